"""The command ``tornasole``: the native program's subcommands, and those that need Python."""

import os
import sys


def main():
    if sys.argv[1:2] == ["run"]:
        from tornasole.run.command_line import main as run

        sys.exit(run(sys.argv[2:]))
    if "--rule-file" in " ".join(sys.argv[2:]):
        from tornasole.rules.rule_file_command import is_asked_for
        from tornasole.rules.rule_file_command import main as rule

        if is_asked_for(sys.argv[1:]):
            sys.exit(rule(sys.argv[2:]))
    program = os.path.join(os.path.dirname(__file__), "bin", "tornasole")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
