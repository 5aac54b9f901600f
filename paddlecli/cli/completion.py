"""`paddlecli completion SHELL`: the script that teaches a shell to complete this program.

The script asks back: `paddlecli completion SHELL -- WORD ...` prints what may stand for the last word,
one a line, behind a tab what it is. `:files` and `:folders` leave the word to the shell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

Shell = Literal["bash", "zsh", "fish", "powershell"]

_BASH = r"""# paddlecli for bash: eval "$(paddlecli completion bash)", for example in ~/.bashrc
_paddlecli() {
    local line current="${COMP_WORDS[COMP_CWORD]}"
    [[ $current == "=" ]] && current=""
    COMPREPLY=()
    while IFS=$'\t' read -r line _; do
        case "$line" in
            :files) compopt -o filenames; while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current") ;;
            :folders) compopt -o filenames; while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current") ;;
            *=) compopt -o nospace; COMPREPLY+=("$line") ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <("$1" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _paddlecli paddlecli
"""

_ZSH = r"""#compdef paddlecli
# paddlecli for zsh: eval "$(paddlecli completion zsh)" behind compinit, or this file as _paddlecli in a folder of $fpath
_paddlecli() {
    local line word
    local -a named keys
    for line in "${(@f)$("$words[1]" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        word="${line%%$'\t'*}"
        case "$word" in
            "") ;;
            :files) _files ;;
            :folders) _files -/ ;;
            *=) keys+=("$word") ;;
            *) [[ "$line" == *$'\t'?* ]] && named+=("${word//:/\\:}:${line#*$'\t'}") || named+=("${word//:/\\:}") ;;
        esac
    done
    (( $#keys )) && compadd -S '' -a keys
    (( $#named )) && _describe -V 'paddlecli' named
    return 0
}
if [[ "$funcstack[1]" == _paddlecli ]]; then _paddlecli "$@"; else compdef _paddlecli paddlecli; fi
"""

_FISH = r"""# paddlecli for fish: paddlecli completion fish > ~/.config/fish/completions/paddlecli.fish
function __paddlecli_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in ($before[1] completion fish -- $before[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files*'
                __fish_complete_path "$current"
            case ':folders*'
                __fish_complete_directories "$current" ''
            case '*'
                echo $line
        end
    end
end
complete -c paddlecli -f -a '(__paddlecli_complete)'
"""

_POWERSHELL = r"""# paddlecli for PowerShell: paddlecli completion powershell | Out-String | Invoke-Expression, for example in $PROFILE
Register-ArgumentCompleter -Native -CommandName paddlecli -ScriptBlock {
    param($current, $line, $cursor)
    $before = @($line.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.Extent.Text })
    # the last word comes behind a plus: older versions drop an argument that is empty
    & $line.CommandElements[0].Extent.Text completion powershell -- @before "+$current" 2>$null |
        Where-Object { $_ -notmatch '^:' } | ForEach-Object {
            $word, $text = $_ -split "`t", 2
            if (-not $text) { $text = $word }
            [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $text)
        }
}
"""

SCRIPTS: dict[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL}


def command(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.")],
) -> None:
    """Print a script that completes commands, options, recipes, data sets, runs and names.

    With `-- WORD ...` behind it, it prints what may stand for the last word: so the scripts ask.
    """
    typer.echo(SCRIPTS[shell], nl=False)


def is_question(arguments: Sequence[str]) -> bool:
    """Whether a script asks. It is answered before the command line is read as one, which takes
    longer than the answer."""
    return (
        len(arguments) > 3
        and arguments[0] == "completion"
        and arguments[1] in SCRIPTS
        and arguments[2] == "--"
    )


def answer(shell: str, words: Sequence[str]) -> list[str]:
    """Lines that a script reads: the words that may stand for the last one."""
    from paddlecli.cli.app import build
    from paddlecli.cli.candidates import candidates

    *before, begun = words
    cut = ""
    if shell == "powershell":
        begun = begun.removeprefix("+")
    if shell == "bash":
        before, begun, cut = _joined([*before, begun])
    found = candidates(build(), [*before, begun])
    return [
        f"{word if word.startswith(':') else word.removeprefix(cut)}\t{' '.join(text.split())}\n"
        for word, text in found
    ]


def _joined(words: Sequence[str]) -> tuple[list[str], str, str]:
    """bash cuts words at `=`: the words as they were written, the last one, and how much of it bash
    keeps by itself."""
    found: list[str] = []
    cut, glue = "", False
    for word in words:
        if found and (glue or word == "="):
            found[-1] += word
        else:
            found.append(word)
        glue = word == "="
        cut = found[-1] if glue else found[-1][: len(found[-1]) - len(word)]
    return found[:-1], found[-1], cut
