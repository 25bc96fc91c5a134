"""The names of plugins and their tools."""

from opentabs_py.core.plugin_names import same_name


def test_two_tools_of_one_name_are_both_located() -> None:
    said = str(same_name("chat_send", "one from chat, one from mine"))
    assert said.startswith("Two tools are named chat_send: one from chat, one from mine.")
