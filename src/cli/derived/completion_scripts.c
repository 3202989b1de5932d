/* The scripts are small: they hand the words to `steward __complete` and show what it answers: a candidate, a tab and a
 * description on each line, or ":files" where names of files are wanted. */
#include "cli/derived/completion_scripts.h"

#include <stddef.h>
#include <string.h>

/* Readline splits words at "=" and ":" too, and takes a candidate for what follows the last of them: so the line is
 * split here, and what stands before is cut from the candidates. */
static const char bash[] = "# bash completion for steward: source <(steward completion bash)\n"
                           "_steward() {\n"
                           "\tlocal line=${COMP_LINE:0:COMP_POINT} words cur skip value out\n"
                           "\tread -a words <<<\"$line\"\n"
                           "\t[[ $line == *[[:space:]] ]] && words+=(\"\")\n"
                           "\tcur=${words[${#words[@]} - 1]}\n"
                           "\tout=$(\"${words[0]/#\\~/$HOME}\" __complete \"${words[@]:1}\" 2>/dev/null) || return 0\n"
                           "\tCOMPREPLY=()\n"
                           "\tif [[ $out == :files ]]; then\n"
                           "\t\tcompopt -o default\n"
                           "\t\treturn 0\n"
                           "\tfi\n"
                           "\tskip=${cur%\"${cur##*[=:]}\"}\n"
                           "\twhile IFS=$'\\t' read -r value _; do\n"
                           "\t\t[[ $value ]] || continue\n"
                           "\t\tvalue=${value#\"$skip\"}\n"
                           "\t\tCOMPREPLY+=(\"$(printf %q \"$value\")\")\n"
                           "\tdone <<<\"$out\"\n"
                           "}\n"
                           "complete -o nosort -F _steward steward\n";

static const char zsh[] =
        "#compdef steward\n"
        "# zsh completion for steward: source <(steward completion zsh), or this file as _steward in $fpath\n"
        "_steward() {\n"
        "\tlocal out line value\n"
        "\tlocal -a lines found\n"
        "\tout=$(\"${(Q)words[1]/#\\~/$HOME}\" __complete \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null) "
        "|| return 1\n"
        "\tif [[ $out == :files ]]; then\n"
        "\t\t_files\n"
        "\t\treturn\n"
        "\tfi\n"
        "\tlines=(\"${(@f)out}\")\n"
        "\tfor line in $lines; do\n"
        "\t\tvalue=${line%%$'\\t'*}\n"
        "\t\tfound+=(\"${value//:/\\\\:}:${line#*$'\\t'}\")\n"
        "\tdone\n"
        "\t(( $#found )) && _describe -V steward found\n"
        "}\n"
        "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
        "\t_steward \"$@\"\n"
        "else\n"
        "\tcompdef _steward steward\n"
        "fi\n";

static const char fish[] = "# fish completion for steward: steward completion fish | source\n"
                           "function __steward_complete\n"
                           "\tset -l words (commandline -opc)\n"
                           "\tset -l cur (commandline -ct)\n"
                           "\tset -l out ($words[1] __complete $words[2..-1] \"$cur\" 2>/dev/null)\n"
                           "\tif test \"$out\" = :files\n"
                           "\t\t__fish_complete_path \"$cur\"\n"
                           "\telse if test -n \"$out\"\n"
                           "\t\tprintf '%s\\n' $out\n"
                           "\tend\n"
                           "end\n"
                           "complete -c steward -f -k -a '(__steward_complete)'\n";

const char *completion_script(const char *shell)
{
	static const struct {
		const char *shell, *script;
	} all[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i].shell, shell) == 0)
			return all[i].script;
	return NULL;
}
