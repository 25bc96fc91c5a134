"""Other processes of this machine."""


def is_running(pid: int) -> bool:
    """Return whether a process runs, whoever owns it."""
    import psutil  # noqa: PLC0415 (takes 10 ms, and is rarely needed)

    try:
        # A killed process remains as a zombie if it is not reaped, as in many containers.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True  # another user's
