/* pagewise-exec POLICY -- PROGRAM ARGUMENTS: becomes the program, under a page policy (policies.h). With --check it reports
 * what it would do.
 *
 * The policy reaches the program by its environment (tunables of glibc, preloaded libraries) and by prctl, both of
 * which its children inherit. Nothing is set where the policy cannot work: exit code 3. The library report.c writes
 * at the end which pages were observed. The libraries lie where the macros name them, relative to this program.
 */
#define _GNU_SOURCE
#include "answer.h"
#include "checks.h"
#include "quiet.h"
#include "where.h"

#include <sys/prctl.h>

#ifndef PAGEWISE_REMAP
#define PAGEWISE_REMAP "../lib/pagewise/remap.so"
#endif
#ifndef PAGEWISE_SELECTED
#define PAGEWISE_SELECTED "../lib/pagewise/selected.so"
#endif
#ifndef PAGEWISE_REPORT
#define PAGEWISE_REPORT "../lib/pagewise/report.so"
#endif

enum { LIST = 65536 };

/* Of settings (policies.h): `advised` and `replaced`. */
struct conditions {
    int is_advised, is_preloaded;
};

static void list_policies(FILE *stream)
{
    for (unsigned number = 0; number < PARTS; number++)
        fprintf(stream, "  %-17s %s\n", parts[number].name, parts[number].meaning);
    fputs("Join them with +, as in reuse+thp; thp and the parts with hugetlbfs take a size: hugetlbfs:1g.\n", stream);
}

static void usage(FILE *stream)
{
    fputs("Usage: pagewise-exec [OPTIONS] POLICY -- PROGRAM [ARGUMENTS]\n\n"
          "Become PROGRAM, under a page policy. At its end it reports on standard error which pages it had.\n\n"
          "  --quiet         Report nothing on standard error.\n"
          "  --record FILE   Append the report to FILE as a line of JSON; %h is the host's name, %p the process.\n"
          "  --where FILE    The memory of the policy where: a selection, or a result of `pagewise where`. POLICY is where\n"
          "                  if it is omitted.\n"
          "  --for FILE      Apply the policy to this program, which PROGRAM starts.\n"
          "  --check         Start nothing: report as JSON whether the policy is available, and what it sets.\n"
          "  --assume WHAT   With --check: `thp`, transparent huge pages will be switched on; `pool`, the hugetlb pool\n"
          "                  will have pages.\n"
          "  --allocator     With --check: look for an allocator in the file of PROGRAM in any case.\n"
          "  --module        Print the module of POLICY, for Lmod; without PROGRAM.\n"
          "  --help          Show this text.\n\n"
          "Policies:\n",
          stream);
    list_policies(stream);
}

static int applies(const struct setting *row, const struct policy *policy, const struct conditions *conditions)
{
    const char *condition = row->condition;
    if (!*row->part || !has(policy, row->part)) return 0;
    if (!strcmp(condition, "advised")) return conditions->is_advised;
    if (!strcmp(condition, "replaced")) return conditions->is_preloaded;
    return !*condition || !strcmp(condition, policy->size ? "sized" : "unsized");
}

__attribute__((format(printf, 3, 4))) static void append(char list[LIST], char separator, const char *format, ...)
{
    size_t at = strlen(list);
    va_list values;
    va_start(values, format);
    if (at) list[at++] = separator;
    int length = vsnprintf(list + at, LIST - at, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= LIST - at) fail(REFUSED, NULL, "an environment variable is too long");
}

static void set(const char *name, const char *value)
{
    if (*value ? setenv(name, value, 1) : unsetenv(name)) fail(REFUSED, NULL, "%s: %s", name, strerror(errno));
}

/* Whether the table has a setting of this kind with this name. */
static int is_policy(const char *kind, const char *name, size_t length)
{
    for (unsigned row = 0; row < SETTINGS; row++)
        if (!strcmp(settings[row].kind, kind) && strlen(settings[row].name) == length
            && !strncmp(settings[row].name, name, length))
            return 1;
    return 0;
}

/* Whether each setting of this kind is a whole variable. */
static int is_variable(const char *kind)
{
    for (unsigned number = 0; number < LISTINGS; number++)
        if (!strcmp(listings[number].kind, kind)) return 0;
    return strcmp(kind, "action") != 0;
}

/* A variable that lists settings: the caller's entries that are not page policies, and those of the policy. */
static void set_list(const struct listing *listing, const struct policy *policy, const struct conditions *conditions)
{
    static char list[LIST], removed[LIST];
    const char *inherited = getenv(listing->variable), separator = *listing->separator;
    const char stops[] = {separator, *listing->joiner, '\0'};
    list[0] = removed[0] = '\0';
    for (const char *at = inherited ? inherited : ""; *at;) {
        size_t length = strcspn(at, listing->separator), name = strcspn(at, stops);
        int is_removed = is_policy(listing->kind, at, name);
        if (length) append(is_removed ? removed : list, separator, "%.*s", (int)length, at);
        at += length + (at[length] == separator);
    }
    note_removed(listing->variable, removed);
    for (unsigned row = 0; row < SETTINGS; row++) {
        const struct setting *of = &settings[row];
        if (strcmp(of->kind, listing->kind) || !applies(of, policy, conditions)) continue;
        append(list, separator, "%s%s", of->name, *of->value ? listing->joiner : "");
        size_t at = strlen(list);
        if (!strcmp(of->value, "{size}")) snprintf(list + at, LIST - at, "%llu", (unsigned long long)policy->size);
        else snprintf(list + at, LIST - at, "%s", of->value);
    }
    set(listing->variable, list);
}

/* Sets lists and variables, as the table has them; `actions` are those of the preloaded library. */
static void apply_settings(const struct policy *policy, const struct conditions *conditions, char actions[LIST])
{
    for (unsigned row = 0; row < SETTINGS; row++)
        if (is_variable(settings[row].kind)) {
            note_removed(settings[row].name, getenv(settings[row].name));
            unsetenv(settings[row].name);
        }
    for (unsigned row = 0; row < SETTINGS; row++) {
        const struct setting *of = &settings[row];
        if (!applies(of, policy, conditions)) continue;
        if (is_variable(of->kind)) set(of->name, of->value);
        if (!strcmp(of->kind, "action") && !listed(actions, of->name, ',')) append(actions, ',', "%s", of->name);
    }
    for (unsigned number = 0; number < LISTINGS; number++) set_list(&listings[number], policy, conditions);
}

/* What the preloaded library refuses: daemons that start ranks (srun) do not pass on what prctl set. */
static void append_refusal(const struct policy *policy, char actions[LIST])
{
    unsigned long setting = thp_setting(policy);
    if (setting) append(actions, ',', setting & UNLESS_ADVISED ? "refuse-unadvised" : "refuse");
}

/* The entries of a variable of the environment as lines of a module; the last of two values counts. */
static void print_entries(const struct listing *listing)
{
    static char list[LIST];
    snprintf(list, sizeof list, "%s", getenv(listing->variable) ? getenv(listing->variable) : "");
    for (char *rest, *entry = strtok_r(list, listing->separator, &rest); entry; entry = strtok_r(NULL, listing->separator, &rest))
        printf("append_path(\"%s\", \"%s\", \"%s\")\n", listing->variable, entry, listing->separator);
}

/* The module of a policy, for Lmod. It advises on every node, because it may be loaded on another one. */
static void print_module(const struct policy *policy, const char *name)
{
    static const struct conditions everywhere = {1, 1};
    static char actions[LIST];
    const char *selection = has(policy, "where") ? getenv("PAGEWISE_WHERE") : NULL;
    if (has(policy, "where") && !selection) fail(USAGE, NULL, "--module: the policy where needs --where FILE");
    if (selection) selection = strdup(selection);
    if (clearenv()) fail(REFUSED, NULL, "%s", strerror(errno));
    apply_settings(policy, &everywhere, actions);
    append_refusal(policy, actions);
    set("PAGEWISE_PRELOAD", actions);
    set("PAGEWISE_EXEC_POLICY", name);
    printf("whatis(\"Name: pagewise-pages\")\nwhatis(\"Version: %s\")\nwhatis(\"Category: benchmark\")\n"
           "whatis(\"Keywords: huge pages, TLB\")\nwhatis(\"Description: page policy %s:", name, name);
    const char *between = " ";
    for (unsigned number = 0; number < PARTS; number++)
        if (policy->parts >> number & 1) printf("%s%s", between, parts[number].meaning), between = "; ";
    fputs("\")\n"
          "family(\"pagewise_pages\")\n"
          "-- The folder of the installation, wherever it is now.\n"
          "local libraries = myFileName():gsub(\"/share/pagewise/modulefiles/.*$\", \"/lib/pagewise\")\n"
          "if libraries:find(\"[ :]\") then\n"
          "    LmodError(\"The loader splits LD_PRELOAD at spaces and colons. Move this installation to another folder: \""
          " .. libraries)\n"
          "end\n"
          "setenv(\"PAGEWISE_EXEC_REPORT\", \"warn\")\n",
          stdout);
    for (unsigned row = 0; row < SETTINGS; row++) {
        const char *variable = settings[row].name, *value = getenv(variable);
        unsigned first = 0;
        while (strcmp(settings[first].name, variable)) first++;
        if (first < row || !is_variable(settings[row].kind)) continue;
        if (value) printf("setenv(\"%s\", \"%s\")\n", variable, value);
        else printf("unsetenv(\"%s\")\n", variable);
    }
    for (unsigned number = 0; number < LISTINGS; number++) print_entries(&listings[number]);
    /* The report first, so that it looks before memory is given back. */
    fputs("prepend_path(\"LD_PRELOAD\", pathJoin(libraries, \"remap.so\"))\n"
          "prepend_path(\"LD_PRELOAD\", pathJoin(libraries, \"report.so\"))\n",
          stdout);
    if (selection)
        printf("prepend_path(\"LD_PRELOAD\", pathJoin(libraries, \"selected.so\"))\nsetenv(\"PAGEWISE_WHERE\", [[%s]])\n", selection);
}

/* Adds a library to those that are preloaded. */
static void preload(const char *name, char list[LIST])
{
    static char own[PATH_MAX], path[PATH_MAX * 2], real[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    char *end = length < 0 ? NULL : strrchr(own, '/');
    if (!end) fail(REFUSED, NULL, "/proc/self/exe cannot be read");
    *end = '\0';
    snprintf(path, sizeof path, "%s/%s", own, name);
    if (!realpath(path, real)) fail(UNAVAILABLE, "install pagewise again", "%s: %s", path, strerror(errno));
    if (strpbrk(real, " :"))
        fail(UNAVAILABLE, "install pagewise in another folder", "%s: the loader splits this path", real);
    append(list, ':', "%s", real);
}

/* Our libraries first, if the program can have them, then the user's. Those of a launcher around this one do not stay. */
static void set_preloaded(const char *own, int is_possible)
{
    static char list[LIST], word[LIST];
    const char *inherited = getenv("LD_PRELOAD");
    if (is_possible) snprintf(list, sizeof list, "%s", own);
    for (const char *at = inherited ? inherited : ""; *at;) {
        size_t length = strcspn(at, ": ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (length && !listed(own, word, ':')) append(list, ':', "%s", word);
        at += length + (at[length] != '\0');
    }
    set("LD_PRELOAD", list);
}

/* Refuses or accepts transparent huge pages: inherited by all that the program starts, also where it is static. */
static void limit_transparent_pages(unsigned long setting)
{
    if (!prctl(PR_SET_THP_DISABLE, setting & REFUSED_THP, setting & UNLESS_ADVISED, 0, 0)) return;
    if (setting & UNLESS_ADVISED && errno == EINVAL)
        fail(UNAVAILABLE, "run it on Linux 6.18 or newer, or have root set transparent huge pages to `madvise`",
             "this kernel does not have PR_THP_DISABLE_EXCEPT_ADVISED");
    if (setting || prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
        fail(UNAVAILABLE, "allow this call; a container's seccomp profile may forbid it",
             "prctl(PR_SET_THP_DISABLE): %s", strerror(errno));
}

/* Where the report goes: `record` with its %h and %p, as an absolute path. */
static void set_record(const char *record)
{
    static char path[PATH_MAX], folder[PATH_MAX];
    char host[256] = "";
    size_t at = 0;
    if (*record != '/' && getcwd(folder, sizeof folder)) at = (size_t)snprintf(path, sizeof path, "%s/", folder);
    gethostname(host, sizeof host - 1);
    for (; *record && at < sizeof path - 1; record++) {
        if (record[0] == '%' && record[1] == 'h') at += (size_t)snprintf(path + at, sizeof path - at, "%s", host);
        else if (record[0] == '%' && record[1] == 'p')
            at += (size_t)snprintf(path + at, sizeof path - at, "%d", (int)getpid());
        else {
            path[at++] = *record;
            continue;
        }
        record++;
    }
    if (at >= sizeof path) fail(USAGE, NULL, "--record: this path is too long");
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    if (file < 0) fail(REFUSED, NULL, "--record %s: %s", path, strerror(errno));
    close(file);
    set("PAGEWISE_EXEC_RECORD", path);
}

/* Checks that the policy is available, and sets it. */
static void apply(const struct policy *policy, const char *name, const struct image *image, int reporting)
{
    static char actions[LIST], libraries[LIST];
    char text[32];
    const struct pages pages = read_pages(policy);
    const struct conditions conditions = {pages.is_advised, can_preload(image)};
    check_node(policy, &pages);
    apply_settings(policy, &conditions, actions);
    check_program(policy, image, has(policy, "where") || needs_preloading(policy, actions));
    if (has(policy, "where")) check_selection(image);
    if (needs(policy, "pool")) check_pool(pages.pool);
    append_refusal(policy, actions);
    if (has(policy, "libhugetlbfs")) append(libraries, ':', "%s", find_libhugetlbfs());
    if (can_preload(image) || *image->runtime) {
        /* Calls of malloc come from the program, not from another library. */
        if (has(policy, "where")) preload(PAGEWISE_SELECTED, libraries);
        /* It looks before remap.so gives memory back. */
        if (reporting || *image->runtime || getenv("PAGEWISE_SNAPSHOT")) preload(PAGEWISE_REPORT, libraries);
        preload(PAGEWISE_REMAP, libraries);
    }
    set("PAGEWISE_PRELOAD", actions);
    snprintf(text, sizeof text, "%llu", (unsigned long long)pages.size);
    set("PAGEWISE_PRELOAD_SIZE", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)pages.pool);
    set("PAGEWISE_PRELOAD_POOL", text);
    set("PAGEWISE_EXEC_POLICY", name);
    if (*libraries) set_preloaded(libraries, can_preload(image));
    limit_transparent_pages(thp_setting(policy));
    if (answer) accept(can_preload(image) ? libraries : "", actions, pages.is_advised);
    if (has(policy, "collapse") && start_watching()) fail(REFUSED, NULL, "no process can be started: %s", strerror(errno));
}

static struct {
    const char *record, *program, *selection;
    int is_quiet, is_check, is_module;
} options;

/* Reads the options; returns the number of the first other argument. */
static int read_options(int count, char **arguments)
{
    static const struct {
        const char *name, **value;
    } valued[] = {{"--record", &options.record}, {"--for", &options.program}, {"--where", &options.selection}, {"--assume", NULL}};
    int at = 1;
    for (; at < count && arguments[at][0] == '-' && strcmp(arguments[at], "--"); at++) {
        size_t number = 0, length = strcspn(arguments[at], "=");
        if (!strcmp(arguments[at], "--quiet")) options.is_quiet = 1;
        else if (!strcmp(arguments[at], "--check")) options.is_check = 1;
        else if (!strcmp(arguments[at], "--allocator")) is_thorough = 1;
        else if (!strcmp(arguments[at], "--module")) options.is_module = 1;
        else if (!strcmp(arguments[at], "--help")) usage(stdout), exit(0);
        else {
            while (number < sizeof valued / sizeof *valued
                   && (strlen(valued[number].name) != length || strncmp(valued[number].name, arguments[at], length)))
                number++;
            const char *option = arguments[at], *value = option[length] ? option + length + 1 : arguments[at + 1];
            if (number == sizeof valued / sizeof *valued || !value)
                fail(USAGE, "pagewise-exec --help", "%s: there is no such option, or its value is missing", option);
            at += !option[length];
            if (valued[number].value) *valued[number].value = value;
            else if (!strcmp(value, "thp")) provided.thp = 1;
            else if (!strcmp(value, "pool")) provided.pool = 1;
            else fail(USAGE, "pagewise-exec --help", "--assume %s: it is neither thp nor pool", value);
        }
    }
    return at;
}

int main(int count, char **arguments)
{
    int at = read_options(count, arguments), program = at + 1;
    /* With a selection the policy may be omitted. */
    int is_omitted = options.selection && (at == count || !strcmp(arguments[at], "--"));
    if (!is_omitted && program < count && !strcmp(arguments[program], "--")) program++;
    int is_named = is_omitted || (at < count && strcmp(arguments[at], "--"));
    if (!is_named || (!options.is_module && program >= count)) return usage(stderr), USAGE;
    const char *text = is_omitted ? "where" : arguments[at];
    static struct policy policy;
    static struct image image;
    static char name[256], process[16];
    const char *why = parse_policy(text, &policy);
    if (!why && options.selection && !has(&policy, "where")) why = "--where needs the part where";
    if (options.is_check) begin_answer(text, why ? NULL : &policy, &image);
    if (why && options.is_check) fail(USAGE, NULL, "%s", why);
    if (why) {
        fprintf(stderr, "pagewise: error: %s: %s\nThere are:\n", is_omitted ? text : plain(arguments[at]), why);
        list_policies(stderr);
        return USAGE;
    }
    write_name(&policy, name, sizeof name);
    if (options.selection) name_selection(options.selection);
    /* Its own malloc would not be seen. */
    is_thorough |= has(&policy, "where");
    if (options.is_module) return print_module(&policy, name), 0;
    if (access("/proc/self", F_OK))
        fail(REFUSED, "as root: mount -t proc proc /proc", "/proc is missing, which shows the pages of programs");
    examine(options.program ? options.program : arguments[program], &image);
    int is_reporting = !options.is_quiet || options.record;
    apply(&policy, name, &image, is_reporting);
    if (options.record) set_record(options.record);
    else unsetenv("PAGEWISE_EXEC_RECORD");
    snprintf(process, sizeof process, "%d", (int)getpid());
    set("PAGEWISE_EXEC_PROCESS", process);
    set("PAGEWISE_EXEC_REPORT", options.is_quiet ? "" : "line");
    if (!can_preload(&image) && is_reporting) {
        static char line[PATH_MAX + 128];
        int length = snprintf(line, sizeof line, "pagewise: %s: %s: its memory is not observed, nothing is recorded\n",
                              plain(image.path), *image.runtime ? image.runtime : "static, or not with glibc");
        write_quietly(STDERR_FILENO, line, (size_t)length);
    }
    execvp(arguments[program], &arguments[program]);
    fail(errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE, NULL, "%s: %s", arguments[program], strerror(errno));
}
