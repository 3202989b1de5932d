/* The scripts that shells load to complete command lines of steward. */
#ifndef STEWARD_CLI_DERIVED_COMPLETION_SCRIPTS_H
#define STEWARD_CLI_DERIVED_COMPLETION_SCRIPTS_H

/* NULL when there is no script for that shell. */
const char *completion_script(const char *shell);

#endif
