/* The page policies of unmodified programs. The runner reads this file (table.py); the C programs include it.
 * One row per line, all columns strings. A policy joins parts in the order of this table.
 *
 * PART(part, size, source, targets, meaning)
 *   size     "sized": it takes a page size; that part comes last
 *   source   what the system must provide: transparent huge pages of private memory ("thp") or of shared memory ("shared"),
 *            a hugetlb pool ("pool")
 *   targets  the kinds of memory that it puts on huge pages
 *
 * OFFER(policy, default, module)
 *   default  "default": compared when the user does not name policies
 *   module   "module": an installation has a module that applies it to all programs of a job
 *
 * LIST(kind, variable, separator, joiner)
 *   A variable of the environment that lists settings: its entries of this kind are name, joiner, value. The caller's
 *   other entries stay.
 *
 * SETTING(part, condition, kind, name, value)
 *   part       "" only removes the caller's setting, as every other row does, too
 *   condition  ""; "advised": the system or the policy gives transparent huge pages to programs that ask; "sized" or
 *              "unsized": whether the policy has a page size; "replaced": a library can be preloaded; it serves an
 *              allocator that replaces malloc, which only the started program shows
 *   kind       that of a list; "action" of the preloaded library (remap.c); any other kind is a whole variable, of
 *              the allocator, the language or the library that the kind names
 *   value      {size}: the page size in bytes
 *
 * A policy without targets refuses huge pages (prctl PR_SET_THP_DISABLE), with `advised` and `where` except in advised
 * memory. The memory of `where` is in the file that PAGEWISE_WHERE names (selection.h).
 *
 * Sources of the settings: glibc's manual (Memory Allocation Tunables), jemalloc(3), the pages "Environment Options" of
 * mimalloc, gperftools' tcmalloc.html, OpenJDK's java(1), CPython 3.15's Doc/using/cmdline.rst, libhugetlbfs(7).
 */
/* clang-format off */
PART("none", "", "", "", "base pages: huge pages refused (prctl PR_SET_THP_DISABLE), no tunables")
PART("reuse", "", "", "", "freed memory is kept and used again (settings of glibc, jemalloc, mimalloc, tcmalloc)")
PART("advised", "", "thp", "", "transparent huge pages only where the program or another part asks for them (Linux 6.18)")
PART("where", "", "thp", "", "transparent huge pages for the memory of selected origins alone (preloaded library; pagewise where)")
PART("collapse", "", "", "heap anonymous bss", "private and shared memory moved onto transparent huge pages from outside, for any program (root)")
PART("text", "", "thp", "text", "machine code copied onto huge pages (preloaded library)")
PART("bss", "", "thp", "bss", "zeroed static arrays on transparent huge pages (preloaded library)")
PART("shared", "", "shared", "shared", "shared memory on transparent huge pages, as given by the system or by advice")
PART("thp", "sized", "thp", "heap anonymous bss", "transparent huge pages for all private memory, as given by the system (always) or by advice")
PART("malloc", "", "thp", "heap anonymous", "transparent huge pages for malloc alone (settings of the allocator, or advice)")
PART("libhugetlbfs", "", "pool", "heap anonymous", "malloc on the hugetlb pool by libhugetlbfs (glibc before 2.34)")
PART("hugetlbfs-data", "sized", "pool", "bss data", "static arrays (.data, .bss) on the hugetlb pool (preloaded library)")
PART("hugetlbfs-shared", "sized", "pool", "shared", "shared memory on the hugetlb pool: System V, anonymous (preloaded library)")
PART("hugetlbfs", "sized", "pool", "heap anonymous", "malloc on the hugetlb pool (settings of the allocator, or a preloaded library)")

OFFER("none", "default", "module")
OFFER("thp", "default", "module")
OFFER("malloc", "default", "module")
OFFER("hugetlbfs", "default", "module")
OFFER("text", "default", "module")
OFFER("bss", "default", "module")
OFFER("reuse", "default", "module")
OFFER("reuse+malloc", "default", "module")
OFFER("reuse+thp", "", "module")
OFFER("shared", "", "module")
OFFER("advised", "", "module")
OFFER("hugetlbfs-data", "", "module")
OFFER("hugetlbfs-shared", "", "module")

LIST("tunable", "GLIBC_TUNABLES", ":", "=")
LIST("jemalloc", "MALLOC_CONF", ",", ":")
LIST("jemalloc", "_RJEM_MALLOC_CONF", ",", ":")
LIST("java", "JAVA_TOOL_OPTIONS", " ", "=")

SETTING("reuse", "", "tunable", "glibc.malloc.trim_threshold", "9223372036854775807")
SETTING("reuse", "", "tunable", "glibc.malloc.mmap_max", "0")
SETTING("reuse", "", "tunable", "glibc.malloc.top_pad", "16777216")
SETTING("reuse", "", "jemalloc", "dirty_decay_ms", "-1")
SETTING("reuse", "", "jemalloc", "muzzy_decay_ms", "-1")
SETTING("reuse", "", "mimalloc", "MIMALLOC_PURGE_DELAY", "-1")
SETTING("reuse", "", "mimalloc", "MIMALLOC_PAGE_RESET", "0")
SETTING("reuse", "", "tcmalloc", "TCMALLOC_RELEASE_RATE", "0")
SETTING("text", "", "action", "text", "")
SETTING("shared", "", "action", "shared", "")
SETTING("thp", "advised", "action", "advise", "")
SETTING("bss", "", "action", "bss", "")
SETTING("thp", "advised", "action", "bss", "")
SETTING("thp", "advised", "tunable", "glibc.malloc.hugetlb", "1")
SETTING("thp", "advised", "java", "-XX:+UseTransparentHugePages", "")
SETTING("malloc", "", "tunable", "glibc.malloc.hugetlb", "1")
SETTING("malloc", "", "jemalloc", "thp", "always")
SETTING("malloc", "", "java", "-XX:+UseTransparentHugePages", "")
SETTING("malloc", "replaced", "action", "advise-malloc", "")
SETTING("hugetlbfs", "unsized", "tunable", "glibc.malloc.hugetlb", "2")
SETTING("hugetlbfs", "sized", "tunable", "glibc.malloc.hugetlb", "{size}")
SETTING("hugetlbfs", "", "mimalloc", "MIMALLOC_ALLOW_LARGE_OS_PAGES", "1")
SETTING("hugetlbfs", "", "mimalloc", "MIMALLOC_LARGE_OS_PAGES", "1")
SETTING("hugetlbfs", "", "python", "PYTHON_PYMALLOC_HUGEPAGES", "1")
SETTING("hugetlbfs", "", "java", "-XX:+UseLargePages", "")
SETTING("hugetlbfs", "sized", "java", "-XX:LargePageSizeInBytes", "{size}")
SETTING("hugetlbfs", "replaced", "action", "pool-malloc", "")
SETTING("hugetlbfs-data", "", "action", "pool-data", "")
SETTING("hugetlbfs-shared", "", "action", "pool-shared", "")
SETTING("libhugetlbfs", "", "libhugetlbfs", "HUGETLB_MORECORE", "yes")
SETTING("", "", "tunable", "glibc.malloc.mmap_threshold", "")
SETTING("", "", "jemalloc", "metadata_thp", "")
SETTING("", "", "java", "-XX:-UseTransparentHugePages", "")
SETTING("", "", "java", "-XX:-UseLargePages", "")
SETTING("", "", "mimalloc", "MIMALLOC_ALLOW_THP", "")
SETTING("", "", "mimalloc", "MIMALLOC_RESERVE_HUGE_OS_PAGES", "")
SETTING("", "", "tcmalloc", "TCMALLOC_MEMFS_MALLOC_PATH", "")
SETTING("", "", "libhugetlbfs", "HUGETLB_ELFMAP", "")
SETTING("", "", "libhugetlbfs", "HUGETLB_SHM", "")
SETTING("", "", "glibc", "MALLOC_TRIM_THRESHOLD_", "")
SETTING("", "", "glibc", "MALLOC_TOP_PAD_", "")
SETTING("", "", "glibc", "MALLOC_MMAP_THRESHOLD_", "")
SETTING("", "", "glibc", "MALLOC_MMAP_MAX_", "")
SETTING("", "", "pagewise", "PAGEWISE_PRELOAD", "")
SETTING("", "", "pagewise", "PAGEWISE_PRELOAD_SIZE", "")
SETTING("", "", "pagewise", "PAGEWISE_PRELOAD_POOL", "")
SETTING("", "", "pagewise", "PAGEWISE_EXEC_POLICY", "")
