"""Where settings come from, and how invalid ones are reported."""

import os
from collections.abc import Mapping
from contextlib import chdir
from errno import EACCES
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from opentabs_py.config.paths import user_file
from opentabs_py.config.settings import demo_settings, load_settings
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugins.settings import Typed
from opentabs_py.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and working directory, and no setting in the environment."""
    for variable in ("XDG_CONFIG_HOME", "HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    for name in (
        "IDLE",
        "CEILING",
        "PORT",
        "HEADED",
        "PLUGINS",
        "CHROMIUM",
        "PROFILE",
        "SETTINGS",
    ):
        monkeypatch.delenv(f"OPENTABS_{name}", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path


def write_user_file(text: str) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(text)


def write_pyproject(text: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.opentabs]\n{text}\n")


def test_without_any_source_the_timers_are_the_documented_ones() -> None:
    assert load_settings().limits == Limits(idle=30.0, ceiling=300.0)


def test_the_users_file_is_read() -> None:
    write_user_file("idle = 5.5")
    assert load_settings().idle == 5.5


def test_the_project_wins_over_the_users_file() -> None:
    write_user_file("idle = 1.0\nceiling = 11.0")
    write_pyproject("idle = 2.0")
    settings = load_settings()
    assert (settings.idle, settings.ceiling) == (2.0, 11.0)


def test_the_environment_wins_over_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    write_pyproject("idle = 2.0")
    monkeypatch.setenv("OPENTABS_IDLE", "3")
    assert load_settings().idle == 3.0


def test_given_values_override_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    write_pyproject("idle = 2.0")
    monkeypatch.setenv("OPENTABS_IDLE", "3")
    assert load_settings(idle=4.0).idle == 4.0


def test_none_counts_as_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENTABS_PORT", "1234")
    assert load_settings(port=None, profile=None).port == 1234


def test_a_list_of_plugins_can_come_from_the_project() -> None:
    write_pyproject('plugins = ["one", "two"]')
    assert load_settings().plugins == (Path.cwd() / "one", Path.cwd() / "two")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", ""])
def test_a_host_that_other_machines_could_reach_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="other machines could connect"):
        load_settings(host=host)


def test_a_value_of_the_environment_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENTABS_CEILING", "soon")
    with pytest.raises(ConfigError, match=r"ceiling: .* not 'soon'"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("idle", "2s", "write a number without a unit, such as 2.5, not '2s'"),
        ("idle", [2], "write a number without a unit, such as 2.5, not [2]"),
        ("keepalive", 0.0, "write more than 0, not 0.0"),
        ("ceiling", float("inf"), "write a finite number, not inf"),
        ("port", "http", "write a whole number, such as 2, not 'http'"),
        ("port", 1.5, "write a whole number, such as 2, not 1.5"),
        ("port", 70_000, "write 65535 or less, not 70000"),
        ("port", -1, "write 0 or more, not -1"),
        ("headed", "maybe", "write true or false, not 'maybe'"),
        ("expose", "some", "write 'all' or 'ready', not 'some'"),
        ("message_limit", 10, "write 1024 or more, not 10"),
        ("idle", True, "write a number, not True"),
        ("audit_days", False, "write a number, not False"),
        ("port", True, "write a number, not True"),
        ("max_result", True, "write a number, not True"),
        (
            "host",
            "0.0.0.0",
            "other machines could connect; use 127.0.0.1, another 127.x.y.z or ::1",
        ),
        (
            "permissions",
            {"a b": "ask"},
            "'a b' is not a valid name; write `default`, a plugin, or plugin.tool",
        ),
        ("profile", "~nobody-at-all/x", "there is no user of that name: ~nobody-at-all/x"),
        ("signed_in", 5, "write a text in quotes, not 5"),
        ("profile", 5, "write a path in quotes, not 5"),
        ("webmcp", 5, 'write a list, such as ["first", "second"], not 5'),
        ("scrub", 5, "write a table, not 5"),
        ("scrub.patterns.0", {"patterns": ["("]}, "write a valid regular expression, not '('"),
        ("scrub.text", {"text": ["Ada"]}, "there is no such setting"),
        ("host", ["x" * 200], f"write a text in quotes, not ['{'x' * 117}…"),
        ("zebra", 2, "there is no such setting"),
        ("idel", 2, "there is no such setting (did you mean 'idle'?)"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_in_plain_words(
    name: str, value: object, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(**{name.partition(".")[0]: value})
    assert str(caught.value) == f"A setting is not valid. {name}: {told}"


def test_the_error_for_a_wrong_value_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project, own = tmp_path / "pyproject.toml", user_file()
    project.write_text('[tool.opentabs]\nceiling = "x"\nidle = "x"\nplugin_settings.chat = 1\n')
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('port = "x"\nplugin_settings.mail = 2\n')
    monkeypatch.setenv("OPENTABS_CEILING", "x")
    with pytest.raises(ConfigError) as caught:
        load_settings(idle="x", plugin_settings={})
    _, _, text = str(caught.value).partition("not valid. ")
    found = dict(each.split(": ", 1) for each in text.split("; "))
    assert found["ceiling"].endswith(" (from OPENTABS_CEILING)")
    assert found["plugin_settings.chat"].endswith(f" (from {project})")
    assert found["plugin_settings.mail"].endswith(f" (from {own})")
    assert found["port"].endswith(f" (from {own})")
    assert found["idle"].endswith("not 'x'")  # it was passed


def test_a_list_of_the_environment_is_written_as_path_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENTABS_PLUGINS", os.pathsep.join(["one", "two/three"]))
    assert load_settings().plugins == (Path.cwd() / "one", Path.cwd() / "two/three")


def test_paths_keep_their_meaning_when_the_directory_changes() -> None:
    given = {"plugins": (Path("../a"),), "plugin_folders": (Path("b"),), "no_review": (Path(),)}
    settings = load_settings(**given, profile=Path("c"))
    here = Path.cwd()
    assert settings.plugins == (here.parent / "a",)
    assert settings.plugin_folders == (here / "b",)
    assert settings.no_review == (here,)
    assert settings.profile == here / "c"


def test_a_tilde_in_a_file_is_the_home() -> None:
    write_user_file('plugins = ["~/chat"]\nprofile = "~/profile"\nno_review = ["~"]')
    settings = load_settings()
    assert settings.plugins == (Path.home() / "chat",)
    assert settings.profile == Path.home() / "profile"
    assert settings.no_review == (Path.home(),)


def test_paths_in_the_users_file_start_in_its_directory() -> None:
    write_user_file(
        'plugins = ["chat", "/mail"]\nplugin_folders = "one:../two"\n'
        'profile = "work"\nchromium = "bin/chrome"'
    )
    settings = load_settings()
    home = user_file().parent
    assert settings.chromium == home / "bin" / "chrome"
    assert settings.plugins == (home / "chat", Path("/mail"))
    assert settings.plugin_folders == (home / "one", home.parent / "two")
    assert settings.profile == home / "work"


def test_paths_in_the_project_start_in_its_directory() -> None:
    write_pyproject('plugins = ["chat"]')
    assert load_settings().plugins == (Path.cwd() / "chat",)


def test_a_path_in_the_users_file_that_is_not_a_text_is_refused() -> None:
    write_user_file("profile = 7")
    with pytest.raises(ConfigError, match="profile"):
        load_settings()


def test_the_home_of_an_unknown_user_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"profile: there is no user of that name"):
        load_settings(profile=Path("~nobody-of-that-name/profile"))


@pytest.mark.parametrize("source", ["project", "user"])
def test_a_file_that_is_not_toml_is_named(source: str) -> None:
    file = user_file() if source == "user" else Path("pyproject.toml").absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("idle = = 5")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"Cannot read the settings in {file}: ")


@pytest.mark.parametrize("source", ["project", "user"])
def test_a_file_that_may_not_be_read_is_named(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = user_file() if source == "user" else Path("pyproject.toml").absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    read: Any = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:  # as root, nothing is refused
        if path == file:
            raise PermissionError(EACCES, "Permission denied", str(path))
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert str(caught.value) == f"Cannot read the settings in {file}: Permission denied"


@pytest.mark.parametrize("source", ["project", "user"])
def test_a_directory_in_the_place_of_a_settings_file_is_reported(source: str) -> None:
    place = user_file() if source == "user" else Path("pyproject.toml").absolute()
    place.mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert (
        str(caught.value) == f"{place} is a directory. Settings are read from a file of that name."
    )


def test_the_users_file_is_where_the_platform_keeps_such_files() -> None:
    assert user_file() == platformdirs.user_config_path("opentabs") / "config.toml"


# --- the settings of plugins ---

SECRET = "hunter2"


def test_plugins_settings_of_all_sources_are_merged_key_by_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_user_file(
        '[plugin_settings.chat]\na = 1\nb = 1\nc = 1\nd = 1\n[plugin_settings.my-mail]\na = "x"'
    )
    Path("pyproject.toml").write_text("[tool.opentabs.plugin_settings.chat]\nb = 2\nc = 2\nd = 2\n")
    monkeypatch.setenv("OPENTABS_PLUGIN_SETTINGS", '{"chat": {"c": 3, "d": 3}}')
    typed = Typed("4")
    settings = load_settings(plugin_settings={"chat": {"d": typed}}).plugin_settings
    assert settings == {"chat": {"a": 1, "b": 2, "c": 3, "d": "4"}, "my-mail": {"a": "x"}}
    assert settings["chat"]["d"] is typed  # typed values stay distinct from written ones


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (f'{{"chat": {{"token": "{SECRET}"', "OPENTABS_PLUGIN_SETTINGS is not valid JSON"),
        (f'{{"chat": "{SECRET}"}}', "plugin_settings.chat: write a table"),
        (f'"{SECRET}"', "settings: write a table"),
    ],
)
def test_invalid_settings_of_plugins_are_reported_but_not_shown(
    monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv("OPENTABS_PLUGIN_SETTINGS", value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert told in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["permissions", "scrub", "plugin_settings"])
@pytest.mark.parametrize("source", ["environment", "project", "user"])
def test_what_is_not_a_table_is_refused_whatever_it_is_merged_with(
    monkeypatch: pytest.MonkeyPatch, name: str, source: str
) -> None:
    match source:
        case "environment":
            monkeypatch.setenv(f"OPENTABS_{name.upper()}", '"off"')
        case "project":
            Path("pyproject.toml").write_text(f'[tool.opentabs]\n{name} = "off"\n')
        case _:
            write_user_file(f'{name} = "off"')
    with pytest.raises(ConfigError, match=f"{name}: write a table"):
        load_settings(**{name: {}})


@pytest.mark.parametrize("text", ["tool = 3", "[tool]\nopentabs = 3"])
def test_a_projects_settings_that_are_not_a_table_are_refused(text: str) -> None:
    Path("pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"\[tool.opentabs\] is not a table"):
        load_settings()


@pytest.mark.parametrize("name", ["PERMISSIONS", "SCRUB", "SECRETS", "PLUGIN_SETTINGS", "VOLATILE"])
def test_a_variable_that_is_not_json_is_named_with_an_example_that_is_valid(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"OPENTABS_{name}", "{" + SECRET)
    with pytest.raises(ConfigError, match=f"OPENTABS_{name} is not valid JSON") as caught:
        load_settings()
    assert SECRET not in str(caught.value)
    monkeypatch.setenv(f"OPENTABS_{name}", str(caught.value).split("'")[1])
    load_settings()


def test_the_settings_of_plugins_are_not_shown_with_the_others() -> None:
    assert SECRET not in repr(load_settings(plugin_settings={"chat": {"token": SECRET}}))


def test_a_server_for_one_program_serves_it_every_tool_whatever_the_settings_say() -> None:
    write_user_file(
        'gateway = true\nexpose = "ready"\nmax_result = 500\nport = 8377\nidle = 7\naudit = true\n'
        'token = "0123456789abcdef"'
    )
    own = load_settings().for_own_use(strict_output=True)
    assert (own.gateway, own.expose, own.max_result, own.port) == (False, "all", None, 0)
    assert (own.token, own.audit) == (None, False)
    assert (own.idle, own.strict_output) == (7, True)


def test_the_demo_ignores_settings_of_plugins_and_of_hands() -> None:
    write_user_file('hands = true\nsecrets = ["PASSWORD"]\n[plugin_settings.chat]\na = 1')
    settings = demo_settings(headed=None)
    assert (settings.plugin_settings, settings.hands, settings.secrets) == ({}, False, {})


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('secrets = ["A", "B"]', {"A": (), "B": ()}),
        ('secrets = { A = "all" }', {"A": ()}),
        ('secrets = { A = "https://a.example/*" }', {"A": ("https://a.example/*",)}),
        ('secrets = { A = ["https://a.example/*", "all"] }', {"A": ()}),
    ],
)
def test_a_secret_is_for_every_page_or_for_those_that_are_named(
    line: str, wanted: Mapping[str, object]
) -> None:
    write_user_file(line)
    assert load_settings().secrets == wanted


def test_secrets_of_all_sources_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    write_user_file('secrets = { A = "https://a.example/*" }')
    monkeypatch.setenv("OPENTABS_SECRETS", '["B"]')
    assert load_settings().secrets == {"A": ("https://a.example/*",), "B": ()}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("secrets = { A = [] }", "name the pages in which A may be typed, or write `all`"),
        ('secrets = { A = "" }', "name the pages in which A may be typed, or write `all`"),
        ('secrets = { A = "shop.example" }', "shop.example"),
        ("secrets = { A = true }", "A"),
        ("secrets = [1]", "secrets"),
        ("secrets = true", "secrets"),
    ],
)
def test_pages_of_secrets_that_cannot_be_read_are_refused(line: str, why: str) -> None:
    write_user_file(line)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert why in str(caught.value)


@pytest.fixture
def of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings for the working directory, in a file of somebody else."""
    project = Path("pyproject.toml")
    project.write_text("[tool.opentabs]\nidle = 7\n")
    owner = project.stat().st_uid
    if owner == 0:
        os.chown(project, 4711, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)


@pytest.mark.usefixtures("of_another_user")
def test_settings_that_another_user_may_have_planted_are_refused() -> None:
    Path().chmod(0o1777)  # as /tmp
    with pytest.raises(
        ConfigError, match=r"pyproject\.toml is another user's, in a directory that all"
    ):
        load_settings()


@pytest.mark.usefixtures("of_another_user")
def test_settings_of_a_directory_that_is_not_shared_are_read() -> None:
    assert load_settings().idle == 7


@pytest.mark.usefixtures("of_another_user")
def test_a_project_of_another_user_without_settings_is_no_reason_to_refuse_anything() -> None:
    Path("pyproject.toml").write_text("[project]\n")
    Path().chmod(0o1777)
    assert load_settings().idle == 30


def test_own_settings_are_read_in_a_shared_directory() -> None:
    Path("pyproject.toml").write_text("[tool.opentabs]\nidle = 7\n")
    Path().chmod(0o1777)
    assert load_settings().idle == 7


@pytest.mark.parametrize("token", ["short", "a token with spaces in it", "é" * 16])
def test_a_token_that_is_easily_guessed_or_cannot_be_sent_is_refused_and_not_shown(
    token: str,
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(token=token)

    assert "token: write 16 characters or more" in str(caught.value)
    assert token not in str(caught.value)


def test_a_token_is_shown_nowhere() -> None:
    settings = load_settings(token="t" * 16)

    assert settings.token is not None
    assert settings.token.get_secret_value() == "t" * 16
    assert "tttt" not in repr(settings)


def test_pages_whose_tools_are_served_are_named_by_patterns_or_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENTABS_WEBMCP", "https://a.example/* all")
    assert load_settings().webmcp == ("https://a.example/*", "*://*/*")
    assert load_settings(webmcp=("http://b.example/*",)).webmcp == ("http://b.example/*",)


@pytest.mark.parametrize("given", [("example.com",), 7])
def test_a_pattern_of_pages_that_is_not_valid_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="webmcp"):
        load_settings(webmcp=given)


def test_settings_of_a_project_whose_directory_was_deleted_are_an_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with chdir(gone):
        gone.rmdir()
        with pytest.raises(ConfigError, match="directory no longer exists"):
            load_settings()


@pytest.mark.parametrize("name", ["config.toml", "pyproject.toml", "OPENTABS_PERMISSIONS"])
def test_two_rules_of_one_name_in_one_source_are_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "config.toml":
        write_user_file('[permissions]\n"chat.send" = "off"\nchat.send = "auto"')
    elif name == "pyproject.toml":
        write_pyproject('permissions.chat.send = "off"\npermissions."chat.send" = "auto"')
    else:
        monkeypatch.setenv(name, '{"chat.send": "off", "chat": {"send": "auto"}}')
    with pytest.raises(ConfigError, match=r"chat\.send is there twice, as 'off' and") as caught:
        load_settings()
    assert f"{name})." in str(caught.value)


def test_rules_of_one_name_are_merged_however_each_source_writes_them() -> None:
    write_user_file('[permissions]\nchat.read = "auto"\n"chat.send" = "off"')
    write_pyproject('permissions.chat.send = "ask"')
    assert load_settings().permissions == {"chat.read": "auto", "chat.send": "ask"}
    given = {"chat": {"send": "auto"}}
    assert load_settings(permissions=given).permissions["chat.send"] == "auto"


def test_a_permission_of_the_users_file_does_not_count_if_another_source_has_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_user_file('[permissions]\n"chat.send" = "off"')
    load_settings().check_counts("chat.send", "auto")
    write_pyproject('permissions.chat.send = "ask"')
    load_settings().check_counts("chat.send", "ask")
    with pytest.raises(ConfigError, match=r"is \"ask\" in .*pyproject.toml, which takes"):
        load_settings().check_counts("chat.send", "auto")
    monkeypatch.setenv("OPENTABS_PERMISSIONS", '{"chat.send": "auto"}')
    load_settings().check_counts("chat.send", "auto")
    with pytest.raises(ConfigError, match="in OPENTABS_PERMISSIONS"):
        load_settings().check_counts("chat.send", "ask")
    given = load_settings(permissions={"chat.send": "off"})
    with pytest.raises(ConfigError, match="as the server was started"):
        given.check_counts("chat.send", "auto")


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    write_user_file("\ufeffidle = 5.5")
    Path("pyproject.toml").write_text("\ufeff[tool.opentabs]\nceiling = 11")
    settings = load_settings()
    assert (settings.idle, settings.ceiling) == (5.5, 11.0)


def test_a_file_in_another_encoding_is_refused_with_what_to_do() -> None:
    write_user_file("")
    user_file().write_bytes("idle = 5.5".encode("utf-16"))
    with pytest.raises(ConfigError, match="Save it in that encoding"):
        load_settings()
