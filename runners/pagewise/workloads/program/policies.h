/* The page policies of unmodified programs. The runner reads this file (table.py); the C programs include it.
 * One row per line, all columns strings. A policy joins parts in the order of this table.
 *
 * PART(part, size, targets, meaning)
 *   size     "sized": it takes a page size; that part comes last
 *   targets  the kinds of memory that it puts on huge pages
 *
 * SETTING(part, condition, kind, name, value)
 *   part       "" only removes the caller's setting, as every other row does, too
 *   condition  ""; "advised": the system or the policy gives transparent huge pages to programs that ask; "sized" or
 *              "unsized": whether the policy has a page size
 *   kind       "tunable" of glibc; "variable" of the environment; "action" of the preloaded library (remap.c)
 *   value      {size}: the page size in bytes
 *
 * A policy without targets refuses huge pages (prctl PR_SET_THP_DISABLE), with `advised` except in advised memory.
 */
/* clang-format off */
PART("none", "", "", "base pages: huge pages refused (prctl PR_SET_THP_DISABLE), no tunables")
PART("reuse", "", "", "freed memory is kept and used again (glibc's trim_threshold, mmap_max, top_pad)")
PART("advised", "", "", "transparent huge pages only where the program or another part asks for them (Linux 6.18)")
PART("text", "", "text", "machine code copied onto huge pages (preloaded library)")
PART("bss", "", "bss", "zeroed static arrays on transparent huge pages (preloaded library)")
PART("thp", "sized", "heap anonymous bss", "transparent huge pages for all private memory, as given by the system (always) or by advice")
PART("glibc", "", "heap anonymous", "transparent huge pages for malloc alone (glibc.malloc.hugetlb=1)")
PART("libhugetlbfs", "", "heap anonymous", "malloc on the hugetlb pool by libhugetlbfs (glibc before 2.34)")
PART("hugetlbfs", "sized", "heap anonymous", "malloc on the hugetlb pool (glibc.malloc.hugetlb=2)")

SETTING("reuse", "", "tunable", "glibc.malloc.trim_threshold", "9223372036854775807")
SETTING("reuse", "", "tunable", "glibc.malloc.mmap_max", "0")
SETTING("reuse", "", "tunable", "glibc.malloc.top_pad", "16777216")
SETTING("text", "", "action", "text", "")
SETTING("thp", "advised", "action", "advise", "")
SETTING("bss", "", "action", "bss", "")
SETTING("thp", "advised", "action", "bss", "")
SETTING("thp", "advised", "tunable", "glibc.malloc.hugetlb", "1")
SETTING("glibc", "", "tunable", "glibc.malloc.hugetlb", "1")
SETTING("hugetlbfs", "unsized", "tunable", "glibc.malloc.hugetlb", "2")
SETTING("hugetlbfs", "sized", "tunable", "glibc.malloc.hugetlb", "{size}")
SETTING("libhugetlbfs", "", "variable", "HUGETLB_MORECORE", "yes")
SETTING("", "", "tunable", "glibc.malloc.mmap_threshold", "")
SETTING("", "", "variable", "HUGETLB_ELFMAP", "")
SETTING("", "", "variable", "HUGETLB_SHM", "")
SETTING("", "", "variable", "MALLOC_TRIM_THRESHOLD_", "")
SETTING("", "", "variable", "MALLOC_TOP_PAD_", "")
SETTING("", "", "variable", "MALLOC_MMAP_THRESHOLD_", "")
SETTING("", "", "variable", "MALLOC_MMAP_MAX_", "")
SETTING("", "", "variable", "PAGEWISE_PRELOAD", "")
SETTING("", "", "variable", "PAGEWISE_PRELOAD_SIZE", "")
SETTING("", "", "variable", "PAGEWISE_EXEC_POLICY", "")
