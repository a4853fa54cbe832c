/* The answer of pagewise-exec --check, one JSON object (schema pagewise.check/1). */
#pragma once
#include "checks.h"

extern char **environ;

enum { MOST_REMOVED = SETTINGS + LISTINGS };

static struct {
    const char *text; /* the policy as it was given */
    const struct policy *policy;
    const struct image *image;
    char **before; /* the environment */
    struct {
        const char *name;
        char *value;
    } removed[MOST_REMOVED];
    size_t removed_count;
} asked;

/* Null without a text. Bytes that are not ASCII stay. */
static void print_text(const char *before, const char *text)
{
    fputs(before, stdout);
    if (!text || !*text) {
        fputs("null", stdout);
        return;
    }
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at < 0x20 || *at == '"' || *at == '\\') printf("\\u%04x", *at);
        else putchar(*at);
    putchar('"');
}

static void print_words(const char *before, const char *list, const char *separator)
{
    static char word[PATH_MAX];
    const char *between = "";
    printf("%s[", before);
    for (size_t length; *list; list += length + (list[length] != '\0'), between = ",") {
        length = strcspn(list, separator);
        snprintf(word, sizeof word, "%.*s", (int)length, list);
        print_text(between, word);
    }
    putchar(']');
}

/* Notes settings of the caller that are page policies and therefore do not reach the program. */
static void note_removed(const char *name, const char *value)
{
    if (!answer || !value || !*value || asked.removed_count == MOST_REMOVED) return;
    asked.removed[asked.removed_count].name = name;
    asked.removed[asked.removed_count++].value = strdup(value);
}

static void print_removed(void)
{
    fputs("\"removed\":{", stdout);
    for (size_t number = 0; number < asked.removed_count; number++) {
        print_text(number ? "," : "", asked.removed[number].name);
        print_text(":", asked.removed[number].value);
    }
    putchar('}');
}

/* The entry of a variable; NULL if the environment does not have it. */
static const char *find_entry(char **environment, const char *entry)
{
    size_t length = strcspn(entry, "=") + 1;
    for (; *environment; environment++)
        if (!strncmp(*environment, entry, length)) return *environment;
    return NULL;
}

/* The variables that differ from the caller's, null without a value; libraries that are preloaded are listed apart. */
static void print_environment(void)
{
    const char *between = "\"environment\":{";
    char **const sides[] = {environ, asked.before};
    for (int side = 0; side < 2; side++)
        for (char **entry = sides[side]; *entry; entry++) {
            const char *other = find_entry(sides[!side], *entry), *value = strchr(*entry, '=');
            if (!value || !strncmp(*entry, "LD_PRELOAD=", 11) || (other && (side || !strcmp(other, *entry)))) continue;
            char *name = strndup(*entry, (size_t)(value - *entry));
            print_text(between, name);
            print_text(":", side ? NULL : value + 1);
            free(name);
            between = ",";
        }
    fputs(*between == ',' ? "}" : "\"environment\":{}", stdout);
}

/* What does not depend on whether the policy is available. */
static void print_policy(void)
{
    char name[256];
    const struct policy *policy = asked.policy;
    fputs("{\"schema\":\"pagewise.check/1\"", stdout);
    if (!policy) {
        print_text(",\"policy\":", *asked.text ? asked.text : " ");
        return;
    }
    const struct pages pages = read_pages(policy);
    unsigned long setting = thp_setting(policy);
    write_name(policy, name, sizeof name);
    print_text(",\"policy\":", name);
    print_text(",\"thp\":", setting & UNLESS_ADVISED ? "advised" : setting ? "refused" : "allowed");
    printf(",\"page_size_bytes\":%llu,\"thp_size_bytes\":%llu,\"parts\":[",
           (unsigned long long)(needs(policy, "pool") ? pages.pool : pages.size), (unsigned long long)pages.pmd);
    const char *between = "";
    for (unsigned number = 0; number < PARTS; number++) {
        if (!(policy->parts >> number & 1)) continue;
        printf("%s{", between);
        print_text("\"name\":", parts[number].name);
        print_text(",\"source\":", parts[number].source);
        printf(",\"size_bytes\":%llu", *parts[number].size ? (unsigned long long)policy->size : 0);
        print_words(",\"kinds\":", parts[number].targets, " ");
        putchar('}');
        between = ",";
    }
    putchar(']');
    print_text(",\"allocator\":", *asked.image->allocator ? asked.image->allocator : asked.image->inside);
}

static void refuse(const char *reason, const char *remedy)
{
    print_policy();
    print_text(",\"available\":false,\"reason\":", reason);
    print_text(",\"remedy\":", remedy);
    print_text(",\"missing\":", provided.missing);
    puts("}");
}

/* The policy is available. */
static void accept(const char *libraries, const char *actions, int is_advised)
{
    print_policy();
    fputs(",\"available\":true,\"reason\":null,\"remedy\":null,\"missing\":null,\"settings\":{", stdout);
    print_environment();
    putchar(',');
    print_removed();
    print_words(",\"preloads\":", libraries, ":");
    print_words(",\"actions\":", actions, ",");
    printf(",\"is_advised\":%s}}\n", is_advised ? "true" : "false");
    exit(0);
}

static void begin_answer(const char *text, const struct policy *policy, const struct image *image)
{
    size_t count = 0;
    while (environ[count]) count++;
    asked.before = calloc(count + 1, sizeof *asked.before);
    if (asked.before) memcpy(asked.before, environ, count * sizeof *environ);
    else fail(REFUSED, NULL, "%s", strerror(errno));
    asked.text = text;
    asked.policy = policy;
    asked.image = image;
    answer = refuse;
}
