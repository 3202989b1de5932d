/* Help texts. Options come from the commands' tables; only the prose is here. */
#include "base/config.h"
#include "cli/cli.h"
#include "cli/derived/command.h"
#include "cli/meant.h"

struct command {
	const char *name, *usage, *summary, *text;
	const struct option_row *options;
	const size_t *option_count;
	const char *after;
};

static const struct command commands[] = {
        {"serve", "steward serve [OPTION]...", "run the service",
         "Serves the administration API over HTTPS. The first start makes, in the data directory, a certificate\n"
         "authority and a certificate, and a first organization, project, owner, API key and service account. It\n"
         "writes them to DIR/bootstrap.json and prints a curl line to try. Once it serves, it prints the line\n"
         "\"steward: ready URL\".",
         config_options, &config_option_count,
         "Every option can also be set in the environment (--log-level: STEWARD_LOG_LEVEL) or in the file of\n"
         "--config (log-level = debug). A flag wins over the environment, the environment over the file.\n"
         "\n"
         "The file also takes rate limits, as CAPACITY/REFILL:\n"
         "  limit.S17 = 100/50              one endpoint set, whoever calls\n"
         "  limit.S17@ID = 1000/500         one endpoint set, for one project, organization, caller or address\n"
         "  limit.* = 5000/5000             all endpoint sets\n"
         "\n"
         "SIGTERM and SIGINT finish what is under way and stop; SIGHUP reads certificate, limits and price book "
         "again.\n"
         "\n"
         "Examples:\n"
         "  steward serve\n"
         "  steward serve --data /var/lib/steward --listen 0.0.0.0:8443 --base-url https://steward.example.com:8443\n"
         "  steward serve --data /tmp/try --listen 127.0.0.1:0 --clock virtual --test-control\n"},
        {"clusters",
         "steward clusters list\n"
         "       steward clusters create NAME [--nodes N] [--shards N] [--size SIZE] [--region NAME] [--wait]\n"
         "       steward clusters scale NAME [--size SIZE] [--nodes N] [--disk GB] [--wait]\n"
         "       steward clusters get | pause | resume | delete | wait NAME [--wait]\n"
         "       steward clusters ca",
         "make, look at, scale, pause, resume and delete clusters",
         "Calls the API of a service. With --wait the command comes back when the cluster is ready, or gone; on a\n"
         "terminal a bar shows how far it is, otherwise lines on stderr do. -o json prints the API's documents. ca\n"
         "prints the certificates by which clients know the project's databases.\n"
         "Exit code: 0 done, 1 refused, or the cluster failed, 2 wrong usage or no profile, 3 the service cannot be\n"
         "reached, 4 not done within --timeout.",
         clusters_options, &clusters_option_count,
         "The service and the credentials come from --profile, or from bootstrap.json in the directory of --data, or\n"
         "from the profile \"default\", or from ./data/bootstrap.json. \"steward help api\" shows what a profile is.\n"
         "\n"
         "Examples:\n"
         "  steward clusters create orders --wait\n"
         "  steward clusters create big --shards 3 --size M30 --version 15 --wait --timeout 600\n"
         "  steward clusters scale orders --size M30 --wait\n"
         "  steward connect orders                  # psql, with all that it needs\n"
         "  psql \"$(steward clusters get orders -o json | jq -r .connectionStrings.standard)\" -U app\n"
         "  steward clusters ca >ca.crt             # for sslmode=verify-full and sslrootcert=ca.crt\n"
         "  steward clusters delete orders --wait\n"},
        {"backups",
         "steward backups take CLUSTER [--description TEXT] [--days N] [--wait]\n"
         "       steward backups restore CLUSTER --to TIME [--target CLUSTER] [--wait]\n"
         "       steward backups restore CLUSTER --snapshot ID [--target CLUSTER] [--wait]\n"
         "       steward backups restore CLUSTER --to TIME --only DATABASE[/SCHEMA.TABLE] [--replace] [--wait]\n"
         "       steward backups show CLUSTER [--snapshot ID]\n"
         "       steward backups window CLUSTER",
         "take a snapshot of a cluster, and bring its data back",
         "take takes a snapshot now. restore makes the data of the target, which is the same cluster unless --target "
         "says\n"
         "another, what the cluster's was at a time or in a snapshot. Until the new data is there and proven, the "
         "target\n"
         "serves what it has. A time that cannot be restored is refused, and the refusal says which can. With --wait "
         "the\n"
         "command comes back when it is done, and the target takes clients again. With --only it is one database or "
         "one\n"
         "table, which gets another name unless --replace is given, and all else goes on. show tells of the newest "
         "snapshot, "
         "or "
         "of\n"
         "another, also when it was last proven. window prints the first and the last second that can be restored; a "
         "line\n"
         "for each stretch without a gap, the newest data first. Exit code as for clusters.",
         backups_options, &backups_option_count,
         "Examples:\n"
         "  steward backups take orders --description 'before the release' --wait\n"
         "  steward backups window orders\n"
         "  steward backups restore orders --to '10 minutes ago' --wait\n"
         "  steward backups restore orders --to 2026-11-16T03:00:00Z --target orders-copy --wait\n"
         "  steward backups restore orders --snapshot latest --yes\n"
         "  steward backups restore orders --to '1h' --only shop/public.items --wait\n"},
        {"advisor", "steward advisor build CLUSTER [--index ID] [--namespace DATABASE.TABLE] [--dry-run]",
         "build an index that the advisor suggests",
         "Looks which indexes are suggested for the cluster, and asks for the one that helps most, or for the one "
         "with\n"
         "that id, to be built on every node. \"steward advisor suggested-indexes list CLUSTER\" shows them all. Exit\n"
         "code as for clusters; 1 too when none is suggested.",
         advisor_options, &advisor_option_count,
         "Examples:\n"
         "  steward advisor build orders\n"
         "  steward advisor build orders --namespace shop.orders --dry-run\n"},
        {"search-indexes", "steward search-indexes try CLUSTER INDEX 'WORDS' [--path FIELD] [--limit N] [--print]",
         "search in an index from the command line",
         "Finds rows with any of the words in any field of words, the best first, each with its score, as a database\n"
         "user that can only read and is deleted afterwards. INDEX is the index's name, or TABLE.INDEX. Words that\n"
         "begin with a brace are a query, as docs/search.md has them. psql has to be installed. Exit code as for\n"
         "clusters.",
         search_options, &search_option_count,
         "Examples:\n"
         "  steward search-indexes try shop main 'running shoes'\n"
         "  steward search-indexes try shop articles.main amber --path title --limit 3\n"
         "  steward search-indexes try shop main '{\"range\": {\"path\": \"price\", \"lt\": 20}}'\n"},
        {"invoices", "steward invoices pdf INVOICE [-f FILE]", "write an invoice as a document",
         "Writes a PDF: what is billed, and what for, added up by project, cluster and SKU. \"steward invoices get\"\n"
         "and \"download\" have every line.",
         invoices_options, &invoices_option_count,
         "Example:\n"
         "  steward invoices pdf 6740a1b2c3d4e5f601234568 -f november.pdf\n"},
        {"connect",
         "steward connect NAME [-c SQL]... [--database NAME] [--read-only] [--hours N]\n"
         "       steward connect NAME --user USER\n"
         "       steward connect NAME --print\n"
         "       steward connect NAME --federation",
         "open psql on a cluster",
         "Makes a database user with your rights and a random password, good for an hour and for this cluster alone; "
         "puts\n"
         "your address on the project's access list for as long, unless it is covered already; waits until the login "
         "works;\n"
         "and starts psql with the server verified. The user is deleted when psql ends. What it has made stays.\n"
         "\n"
         "Your rights: an owner of the project gets svcAdmin, GROUP_DATA_ACCESS_READ_WRITE readWriteAnyDatabase,\n"
         "GROUP_DATA_ACCESS_READ_ONLY readAnyDatabase. Making the user takes GROUP_DATABASE_ACCESS_ADMIN, adding the\n"
         "address GROUP_NETWORK_ACCESS_MANAGER. Without the first, --user names a user that somebody made for you.\n"
         "Exit code: that of psql once it runs; before, as for clusters.",
         connect_options, &connect_option_count,
         "Examples:\n"
         "  steward connect orders\n"
         "  steward connect orders -c 'select version()'\n"
         "  steward connect orders --database shop <shop.sql\n"
         "  steward connect orders --read-only --hours 8 --print\n"
         "  steward connect orders --user app\n"},
        {"api", "steward api METHOD PATH [--query NAME=VALUE]... [--body JSON | @FILE | @-]", "call any operation",
         "Calls one operation of the API and prints the answer. PATH is below /api/svc/v2, or begins with /api, or is "
         "a\n"
         "link that the service gave; {groupId} and {orgId} in it, and as values in the body, stand for those of the\n"
         "profile. Exit code as for clusters.",
         api_options, &api_option_count,
         "A profile is a file in ~/.config/steward/profiles, named as you like, that only you can read (chmod 600):\n"
         "\n"
         "  base-url = https://steward.example.com:8443\n"
         "  ca-file = /etc/steward/ca.crt          # left out: the authorities that this machine trusts\n"
         "  client-id = ...                        # a service account, or\n"
         "  client-secret = ...\n"
         "  public-key = ...                       # an API key\n"
         "  private-key = ...\n"
         "  project = 6740a1b2c3d4e5f601234567     # or its name\n"
         "  organization = 6740a1b2c3d4e5f601234567\n"
         "\n"
         "Examples:\n"
         "  steward api GET /groups --query itemsPerPage=10\n"
         "  steward api POST '/groups/{groupId}/accessList' --body '[{\"cidrBlock\": \"10.0.0.0/8\"}]'\n"
         "  steward api GET '/groups/{groupId}/clusters/HOST/logs/db.gz' >log.gz\n"},
        {"login",
         "steward login [NAME] --url URL (--web | --client-id ID | --public-key KEY) [--project ID] [--org ID]\n"
         "       steward login [NAME] ... (--ca-file FILE | --ca-fingerprint SHA256)",
         "sign in to a service, and keep a profile of it",
         "Makes the profile NAME (\"default\") and has commands use it from now on. On a terminal it asks for what is "
         "not\n"
         "given. A service whose authority this machine does not know is trusted by the fingerprint of that "
         "authority,\n"
         "which you compare, and by nothing else afterwards: a copy of the certificate is kept. A call is made at "
         "once;\n"
         "a profile is kept only when it works.\n"
         "\n"
         "--web signs you in as yourself: it prints a link and a code, and waits until you allow it in the console.\n"
         "It lasts as long as a sign-in of a browser, and the account's page of the console shows and ends it.\n"
         "\n"
         "The secret is asked for and not shown; without a terminal it is read from STEWARD_CLIENT_SECRET or\n"
         "STEWARD_PRIVATE_KEY, or else from standard input. Exit code as for clusters.",
         login_options, &login_option_count,
         "Examples:\n"
         "  steward login --url https://steward.example.com:8443\n"
         "  steward login --url https://steward.example.com:8443 --web\n"
         "  steward login work --url https://10.0.0.5:8443 --client-id mdb_sa_id_... --project shop <secret\n"
         "  openssl x509 -noout -fingerprint -sha256 -in DATA/tls/ca.crt    # what --ca-fingerprint takes\n"},
        {"logout", "steward logout [NAME]", "remove a profile",
         "Removes the profile NAME, or the current one, with its copy of the service's authority. A sign-in by a "
         "browser\n"
         "(--web) is ended at the service too; a service account or an API key goes on: delete it in the service.",
         logout_options, &logout_option_count, NULL},
        {"config",
         "steward config list\n"
         "       steward config use NAME\n"
         "       steward config get [SETTING] | set SETTING VALUE | unset SETTING | path",
         "profiles: which there are, which is used, their settings",
         "Works without a service. Settings are base-url, ca-file, client-id, public-key, project and organization;\n"
         "secrets are neither shown nor taken here: \"steward login\" asks for them.",
         config_command_options, &config_command_option_count,
         "Examples:\n"
         "  steward config list\n"
         "  steward config use work\n"
         "  steward config set project shop\n"},
        {"logs", "steward logs NAME [--node NAME] [--since TIME] [--audit] [--follow]",
         "what the databases of a cluster write down",
         "Prints the log of all nodes of a cluster, one after the other, or of one node. With --follow it goes on "
         "with\n"
         "what is written from then on, of all of them, until Ctrl-C. Exit code as for clusters.",
         logs_options, &logs_option_count,
         "Examples:\n"
         "  steward logs orders --since 15m\n"
         "  steward logs orders --node 00-01 --follow\n"
         "  steward logs orders --audit -o json >audit.jsonl\n"},
        {"events", "steward events [--follow] [--since TIME] [--type TYPE]... [--cluster NAME]...",
         "what happened in a project, and goes on",
         "Prints the newest events, the oldest of them first. With --follow it goes on with what happens, until "
         "Ctrl-C.\n"
         "Exit code as for clusters.",
         events_options, &events_option_count,
         "Examples:\n"
         "  steward events --since 2h --cluster orders\n"
         "  steward events --follow --type CLUSTER_READY --type CLUSTER_DELETED\n"
         "  steward events --scope organization -o json\n"},
        {"completion", "steward completion bash | zsh | fish", "have a shell complete commands and names",
         "Prints a script for the shell. Commands and flags are completed without a service; names of clusters, "
         "users,\n"
         "projects and the like are asked of the service that the command line is for.",
         completion_options, &completion_option_count,
         "Examples:\n"
         "  source <(steward completion bash)       # in ~/.bashrc\n"
         "  source <(steward completion zsh)        # in ~/.zshrc, after compinit\n"
         "  steward completion fish >~/.config/fish/completions/steward.fish\n"},
        {"limits",
         "steward limits set (--set ID | --all) [--scope ID] --capacity N --refill N [--data DIR]\n"
         "       steward limits clear (--set ID | --all) [--scope ID] [--data DIR]\n"
         "       steward limits list [-o json] [--data DIR]",
         "change rate limits, also of a running service",
         "Overrides of the rate limits, kept in the store. A running service follows within a second. The most\n"
         "specific one holds: set and scope, then set, then all and scope, then all. An override wins over the same\n"
         "limit in a configuration file; list shows overrides only. clear removes exactly the override that the same\n"
         "words would set.",
         limits_options, &limits_option_count,
         "Examples:\n"
         "  steward limits set --set S17 --scope 6740a1b2c3d4e5f601234567 --capacity 1000 --refill 500\n"
         "  steward limits set --all --capacity 100000 --refill 100000\n"
         "  steward limits clear --all\n"},
        {"backup", "steward backup [--data DIR] FILE", "copy the store, also of a running service",
         "Writes a consistent copy of the store to FILE, which must not exist. The databases of the clusters, in\n"
         "DIR/engine, are not in it, nor their backups (\"steward backups\", with an s), nor DIR/secret.key and\n"
         "DIR/tls, which must be kept with it: without the key, neither secrets nor backups can be opened.",
         backup_options, &backup_option_count,
         "Example:\n"
         "  steward backup --data /var/lib/steward /backup/steward.db && steward check /backup/steward.db\n"},
        {"store", "steward store copy --from URL --to URL\n       steward store reopen --from URL",
         "copy everything into another store",
         "Copies a store into an empty one of either kind, and compares the two row by row at the end. Stop the "
         "service\n"
         "first. A copy that was broken off goes on when the same command is given again. The source is marked as "
         "moved,\n"
         "and no service starts on it any more; reopen takes that back, for when the copy is not used after all.",
         store_options_rows, &store_option_count,
         "Example:\n"
         "  steward store copy --from /var/lib/steward --to postgresql://steward@db.example.com/steward\n"},
        {"give-up", "steward give-up [--data DIR] CLUSTER [--yes]", "go on without data that is missing",
         "CLUSTER, an id or a name, is one whose data is missing, or was replaced by another database's: its state is\n"
         "REPAIRING, and its status says what is missing and where. Put back, it is found again by itself. Given up\n"
         "with --yes, what is missing is made anew, empty, and what is there is taken as it is. The cluster keeps its\n"
         "name, users and access list. Works beside a running service, which follows within a minute, and without one.",
         give_up_options, &give_up_option_count,
         "Examples:\n"
         "  steward give-up --data /var/lib/steward orders          # what would be given up\n"
         "  steward give-up --data /var/lib/steward orders --yes\n"},
        {"invitation-link", "steward invitation-link [--data DIR] ID", "make a link that accepts an invitation",
         "Prints a link by which whoever was invited accepts or declines; a link that was made before ends. For "
         "services\n"
         "without a mail server: their log has the invitation's id, and never a link. Hand it over as you would a\n"
         "password.",
         invitation_link_options, &invitation_link_option_count,
         "Examples:\n"
         "  steward invitation-link --data /var/lib/steward 6740a1b2c3d4e5f601234567\n"},
        {"domains", "steward domains [--data DIR] [list | approve|withdraw ORGANIZATION DOMAIN]",
         "say whose a domain is, for sign-in by identity providers",
         "An identity provider signs people of a domain in once its federation has proven the domain: by a record in\n"
         "the domain name system, by a file on the domain's web site, or by the operator's word. `list` shows the\n"
         "domains that providers name; `approve` is that word for the federation of the organization (an id; a\n"
         "federation's id does too), and `withdraw` takes any proof back, which ends sessions that providers began.\n"
         "Works beside a running service, and without one.",
         domains_options, &domains_option_count,
         "Examples:\n"
         "  steward domains --data /var/lib/steward\n"
         "  steward domains approve --data /var/lib/steward 6740a1b2c3d4e5f601234567 example.com\n"},
        {"orphans", "steward orphans list [--data DIR]\n       steward orphans end ID [--data DIR] [--yes]",
         "look at databases that the store does not know",
         "After an older copy of the store was put in place, the clusters that were made since run on, and no call "
         "shows\n"
         "them. The service names them in its log and as the metric steward_clusters_orphaned, and does nothing with\n"
         "them: a newer copy of the store has them again. end, with --yes, ends the servers of one and removes its "
         "data.\n"
         "Works beside a running service, which follows within a minute, and without one.",
         orphans_options, &orphans_option_count,
         "Examples:\n"
         "  steward orphans list --data /var/lib/steward\n"
         "  steward orphans end 6740a1b2c3d4e5f601234567 --data /var/lib/steward --yes\n"},
        {"password-link", "steward password-link [--data DIR] USERNAME [--without-codes]",
         "make a link that sets somebody's password",
         "Prints a link to the console that sets a new password for the account, once and within an hour; all its\n"
         "sessions end then. For services without a mail server, and for people who have lost their one-time and\n"
         "recovery codes (--without-codes). Hand it over as you would a password.",
         password_link_options, &password_link_option_count,
         "Examples:\n"
         "  steward password-link --data /var/lib/steward ada@example.com\n"},
        {"release-policy", "steward release-policy [--data DIR] PROJECT [--yes]",
         "let a project's backup compliance policy be disabled",
         "PROJECT is the id of a project whose backup compliance policy holds everybody, its owners too. Released "
         "with\n"
         "--yes, the policy can be disabled through the API by an owner; until then it goes on to hold. Works beside "
         "a\n"
         "running service and without one. Make sure that the person whom the policy authorizes has asked for it.",
         release_policy_options, &release_policy_option_count,
         "Examples:\n"
         "  steward release-policy --data /var/lib/steward 6740a1b2c3d4e5f601234567          # whose it is\n"
         "  steward release-policy --data /var/lib/steward 6740a1b2c3d4e5f601234567 --yes\n"},
        {"accept-endpoint",
         "steward accept-endpoint [--data DIR] ENDPOINT (--address ADDRESS[,ADDRESS...] | --reject REASON)",
         "let a private endpoint's consumers pass, or not",
         "ENDPOINT is an id at the provider, as vpce-0a1b2c3d4e5f60718, or the one that this command prints. Without\n"
         "--address and --reject the command tells whose it is. Consumers are known by the addresses or networks that\n"
         "their connections come from, as the relay's host sees them; given again, they take the place of those\n"
         "before. A rejected endpoint shows the reason, and passes nothing. Works beside a running service, which\n"
         "follows within a second, and without one.",
         accept_endpoint_options, &accept_endpoint_option_count,
         "Examples:\n"
         "  steward accept-endpoint --data /var/lib/steward vpce-0a1b2c3d4e5f60718       # whose it is\n"
         "  steward accept-endpoint --data /var/lib/steward vpce-0a1b2c3d4e5f60718 --address 10.20.0.0/16\n"},
        {"hosts",
         "steward hosts list [-o json]\n"
         "       steward hosts show HOST [-o json]\n"
         "       steward hosts cordon | uncordon HOST\n"
         "       steward hosts label HOST NAME=VALUE...\n"
         "       steward hosts remove HOST [--force]",
         "look at the hosts that share a store, and direct new clusters",
         "HOST is a name or an id. list shows each host's state, clusters, and what their sizes add up to, of the\n"
         "bounds that it was started with (--host-cores, --host-memory-gb, --host-disk-gb). A new cluster goes to a\n"
         "host whose labels provider and region are those of its first region, or are not set, and that has room. A\n"
         "cordoned host takes no new clusters; those that it has stay. NAME= takes a label away. remove is for\n"
         "a host that will not come back: one that is alive is refused, and one that has clusters unless --force is\n"
         "given. Changes are events of the first organization.",
         hosts_options, &hosts_option_count,
         "Examples:\n"
         "  steward hosts list --data /var/lib/steward --store postgresql://steward@db.example.com/steward\n"
         "  steward hosts label db-1 provider=AWS region=US_EAST_1 zone=a\n"
         "  steward hosts cordon db-1\n"},
        {"secret-key", "steward secret-key rotate | status | retire [--data DIR] [--store URL]",
         "change the key that seals secrets and backups, beside a running service",
         "rotate puts a new key into DIR/secret.key, before the old one. A running service brings it into use within\n"
         "seconds, and seals everything in the store anew; where several hosts share the store, once the file was\n"
         "copied to each of them. status tells which key is in use and what is still sealed with an old one. retire\n"
         "takes the old key out of the file, and refuses while anything may need it: values in the store, hosts that\n"
         "do not use the new key, backups (\"steward repository rewrap\"), and for a day links that were given out.",
         secret_key_options, &secret_key_option_count,
         "Examples:\n"
         "  steward secret-key rotate --data /var/lib/steward\n"
         "  steward secret-key status --data /var/lib/steward\n"
         "  steward repository rewrap --data /var/lib/steward\n"
         "  steward secret-key retire --data /var/lib/steward\n"},
        {"outbox", "steward outbox [--data DIR] [--status STATUS] [--alert ID] [-o json]",
         "see what has left: mail, webhooks, messages of alerts",
         "Prints a line for each message of an alert: when it was last looked at, whether it is QUEUED, DELIVERED or\n"
         "FAILED, its kind and receiver, the number of attempts, the alert, and the last error. Works beside a "
         "running\n"
         "service.",
         outbox_options, &outbox_option_count,
         "Example:\n"
         "  steward outbox --data /var/lib/steward --status FAILED\n"},
        {"billing",
         "steward billing show --org ID [-o json]\n"
         "       steward billing evidence --org ID --day DATE [--cluster NAME]\n"
         "       steward billing method --org ID [--method REFERENCE] [--email ADDRESS]\n"
         "       steward billing paid INVOICE [--cents N] [--note TEXT]\n"
         "       steward billing failed | forgive INVOICE [--note TEXT]\n"
         "       steward billing refund INVOICE --cents N [--note TEXT]\n"
         "       steward billing lock --org ID [--note TEXT]\n"
         "       steward billing unlock --org ID\n"
         "       steward billing credit | correct --org ID --cents N [--note TEXT]\n"
         "       steward billing limit --org ID --cents N\n"
         "       steward billing link --org ID [--payer ID]",
         "say who pays, what was paid, and who is locked",
         "method tells what the payment service charges for an organization: that service's own reference, never a\n"
         "number of a card; \"invoice\" where it is billed by letter, an empty one for none. paid, failed, forgive\n"
         "and refund tell what became of a closed invoice; a payment of all that is owed unlocks. credit gives money\n"
         "for invoices to come, correct adds a line (of a negative sum too) to the open invoice. limit is what may\n"
         "be spent in a month (0: anything): told of at 80 percent, and a lock until the month is over beyond it. "
         "link\n"
         "lets another organization pay; without --payer it pays for itself again. Works beside a running service,\n"
         "which follows at once. evidence prints the measurements that the lines of a day are made of, as JSON.",
         billing_options, &billing_option_count,
         "Examples:\n"
         "  steward billing method --org 6740a1b2c3d4e5f601234567 --method cus_N8x2\n"
         "  steward billing paid 6740a1b2c3d4e5f601234568 --note ch_3Jx\n"
         "  steward billing credit --org 6740a1b2c3d4e5f601234567 --cents 10000 --note \"for the outage\"\n"},
        {"check", "steward check [--data DIR | --store URL | FILE]", "verify the data or a backup",
         "Verifies a store, of a running service too, or a backup: its integrity, counters, lists and references.\n"
         "Prints each fault. Exit code: 0 clean, 1 faults found, 2 it cannot be read.",
         check_options, &check_option_count, NULL},
        {"repository",
         "steward repository check [--sample SHARE] [--region NAME] [--project ID]\n"
         "       steward repository usage [--region NAME] [--project ID]\n"
         "       steward repository unknown [--region NAME] [--project ID]\n"
         "       steward repository adopt [--region NAME] [--project ID]\n"
         "       steward repository rebuild [--org ID] [--region NAME] [--project ID]\n"
         "       steward repository prove CLUSTER [--snapshot ID]\n"
         "       steward repository rewrap",
         "verify the backups of the databases, or see their space",
         "check reads the backups, all of them or a random share, beside a running service too. Every byte is held\n"
         "against what was written; a fault names the object and the snapshots that need it. usage tells how many "
         "bytes\n"
         "each project's snapshots and log take. unknown lists snapshots that lie there and are not in the catalogue:\n"
         "the store is an older copy; adopt brings them into it again, for 30 days. rebuild does so where the\n"
         "store is lost: into a new one, with the projects and the clusters that they are of. prove has the running "
         "service\n"
         "restore a cluster's newest snapshot, or another,\n"
         "into a server that is thrown away, and check it there; \"steward backups show\" and the log tell what was "
         "found. rewrap seals the projects' keys with the newest of the service's keys (\"steward secret-key\").\n"
         "Exit code: 0 clean, 1 faults or unknown snapshots found, or nothing to prove, 2 they cannot be read.",
         repository_options, &repository_option_count,
         "Examples:\n"
         "  steward repository check --data /var/lib/steward --sample 5%\n"
         "  steward repository usage --data /var/lib/steward --region US_EAST_1\n"
         "  steward repository rebuild --data /var/lib/steward\n"
         "  steward repository prove --data /var/lib/steward orders\n"},
};
#define COMMANDS (sizeof commands / sizeof *commands)

bool help_entry(size_t number, struct command_entry *ret_entry)
{
	if (number >= COMMANDS)
		return false;
	const struct command *c = &commands[number];
	*ret_entry = (struct command_entry){c->name, c->summary, c->options, *c->option_count};
	return true;
}

void version_print(FILE *out)
{
	fprintf(out, "steward %s\n", STEWARD_VERSION);
}

void help_program(FILE *out)
{
	fprintf(out, "Steward, a self-hosted administration API for database deployments.\n\n"
	             "Usage: steward COMMAND [OPTION]...\n\nCommands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\nCommands for everything in the API, as in \"steward database-users list\":\n");
	usage_families(out);
	fprintf(out, "\n  steward COMMAND --help    explains a command\n"
	             "  steward --version         prints the version\n\n"
	             "To begin: \"steward serve\" keeps its data in ./data, listens on https://127.0.0.1:8443, and "
	             "prints what to try:\n"
	             "\"steward clusters create first --wait\" makes a cluster, \"steward connect first\" opens psql "
	             "on it.\n");
}

bool help_command(FILE *out, const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		const struct command *c = &commands[i];
		if (strcmp(c->name, name) != 0)
			continue;
		fprintf(out, "Usage: %s\n\n%s\n\nOptions:\n", c->usage, c->text);
		options_help(out, c->options, *c->option_count);
		if (c->after)
			fprintf(out, "\n%s", c->after);
		return true;
	}
	return false;
}

int help_unknown(const char *word)
{
	const char *names[COMMANDS];
	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	return meant_command(word, names, COMMANDS);
}
