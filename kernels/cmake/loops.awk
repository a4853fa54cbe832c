# Print what the innermost loops that compute in a disassembly do, one line per loop: `packed`, `scalar` or `remainder`;
# prefetches; bytes of non-temporal stores; bytes of other stores; a signature: bytes loaded and stored, and arithmetic
# instructions by register. Compilers unroll scalar loops as they like: their signature is that of one iteration before.
#
# Variables: processor. Reads what objdump of GNU or LLVM prints with --disassemble --no-show-raw-insn.
BEGIN {
    x86 = processor ~ /x86_64|AMD64/
    jump = x86 ? "^j" : "^(b|b\\.[a-z]+|cbn?z|tbn?z)$"
    call = x86 ? "^call" : "^blr?$"
    prefetch = x86 ? "^prefetch" : "^prf"
    vector = x86 ? "%[xyz]mm" : "[{ ,][vqdszh][0-9]+[., }]"
    stack = "%rsp|%rip"
    stream = x86 ? "^v?movnt" : "^(stnp|stnt1)"
}

function greatest_divisor(a, b,   rest) {
    while (b) { rest = a % b; a = b; b = rest }
    return a
}

# The bytes that an x86 instruction on vector registers reads or writes in memory.
function x86_bytes(opcode, operands) {
    if (opcode ~ /(pinsr|pextr)w$/) return 2
    if (opcode ~ /cvt(ph2ps|ps2ph)/) return operands ~ /%zmm/ ? 32 : operands ~ /%ymm/ ? 16 : 8
    if (opcode ~ /(ss|movd)$|(pinsr|pextr)d$/) return 4
    if (opcode ~ /(sd|movq|movl[dp]s|mov[lh]p[sd]|movddup)$|(pinsr|pextr)q$/) return 8
    if (operands ~ /%zmm/) return 64
    if (operands ~ /%ymm/ && opcode !~ /128/) return 32
    return 16
}

# Whether an instruction on other registers stores a word, or updates it. Loads are of indices and addresses too.
function writes_word(i) {
    if (!x86) return op[i] ~ /^(str|stp|stur)$/ && args[i] !~ vector && args[i] !~ /\[sp/
    return op[i] ~ /^(mov|add|sub|xor|or|and)[lq]?$/ && args[i] ~ /\)$/ && args[i] !~ vector && args[i] !~ stack
}

# Whether the loop has loaded the memory operand among these operands before, its registers unchanged: a compiler may load an
# element twice instead of keeping it in a register.
function loaded_before(operands, bytes,   place, register) {
    match(operands, /[^ ,]*\([^)]*\)/)
    place = bytes " " substr(operands, RSTART, RLENGTH)
    for (register in written) if (index(place, register)) place = place " " register written[register]
    return seen[place]++
}

function x86_instruction(i,   opcode, operands, memory, arithmetic, width) {
    opcode = op[i]; operands = args[i]
    if (opcode ~ stream) {
        streamed += operands ~ vector ? x86_bytes(opcode, operands) : 8
        if (opcode ~ /(p[sd]|dq)$/) packed = 1
        return
    }
    memory = operands ~ /\(/ && operands !~ stack
    if (opcode !~ /^(cmp|test)/ && match(operands, /%[er][^,)]*$/)) written[substr(operands, RSTART + 2)]++
    if (operands !~ vector) {
        words += writes_word(i)
        updates += writes_word(i) && opcode !~ /^mov/
        return
    }
    vectorial = 1
    width = operands ~ /%zmm/ ? "z" : operands ~ /%ymm/ ? "y" : "x"
    arithmetic = opcode ~ /^v?(add|sub|mul|div|sqrt|max|min|fn?m(add|sub)|p(add|sub|mul)|cvt)/
    if ((memory || arithmetic) && opcode ~ /p[sd]$|^v?p|^v?movdq/ && opcode !~ /pinsr|pextr|mov[lh]p/) packed = 1
    if (operands ~ /\)$/ && memory && opcode !~ /^v?u?comis|^v?cmp|test/) stored += x86_bytes(opcode, operands)
    else if (memory && !loaded_before(operands, x86_bytes(opcode, operands))) loaded += x86_bytes(opcode, operands)
    sub(/132|213|231/, "", opcode)
    if (arithmetic) count[width opcode]++
}

# Bytes of a register operand of aarch64.
function arm_bytes(operand) {
    if (operand ~ /^z/) return 64
    if (operand ~ /^q|^v/) return 16
    if (operand ~ /^d/) return 8
    if (operand ~ /^s/) return 4
    return 2
}

function arm_instruction(i,   opcode, operands, part, bytes, n) {
    opcode = op[i]; operands = args[i]
    words += writes_word(i)
    if (" " operands "," !~ vector) return
    vectorial = 1
    gsub(/[{} ]/, "", operands)
    n = split(operands, part, ",")
    if (args[i] ~ /v[0-9]+\.|z[0-9]+\.|(^| )q[0-9]/) packed = 1
    bytes = arm_bytes(part[1]) * (opcode ~ /p$/ ? 2 : 1)
    if (opcode ~ /^(ld|st)/) {
        if (args[i] ~ /\[sp/) return
        if (opcode ~ stream) streamed += bytes
        else if (opcode ~ /^st/) stored += bytes
        else loaded += bytes
    } else if (opcode ~ /^f?(add|sub|mul|div|sqrt|max|min|mla|mls|mad|msb|madd|msub|nmadd|nmsub|cvt)/)
        count[substr(part[1], 1, 1) opcode]++
}

# The bytes and the n arithmetic instructions of the loop, divided by the number of iterations in it.
function signature(n, names, iterations,   i, text) {
    text = "load " loaded / iterations " store " (stored + streamed) / iterations
    for (i = 1; i <= n; i++) text = text " " names[i] " " count[names[i]] / iterations
    return text
}

# The instructions' names without width, precision and number: what vectors and single elements have in common.
function kind_of(n, names,   i, name, kind) {
    for (i = 1; i <= n; i++) {
        name = substr(names[i], 2)
        sub(/[sp][sd]$/, "", name)
        sub(/madd$|mla$/, "ma", name)
        if (index(kind " ", " " name " ") == 0) kind = kind " " name
    }
    return kind
}

# Describe the loop of instructions first to last; one that must store only if it does.
function describe(first, last, stores,   i, key, n, names, divisor, j, swap) {
    split("", count); split("", seen); split("", written)
    loaded = stored = streamed = words = updates = vectorial = packed = prefetched = 0
    for (i = first; i <= last; i++) {
        if (op[i] ~ prefetch) prefetched++
        else if (x86) x86_instruction(i)
        else arm_instruction(i)
    }
    # Beside vectors, words that are stored are addresses for which there was no register.
    if (!vectorial) {
        stored += 8 * words
        loaded += 8 * updates
        if (updates) count["update"] = updates
    }
    n = 0
    divisor = stored + streamed
    for (key in count) {
        names[++n] = key
        divisor = greatest_divisor(divisor, count[key])
    }
    if ((n == 0 && stored + streamed + prefetched == 0) || (stores && stored + streamed == 0)) return
    # Sums are combined between passes, from registers.
    if (n > 0 && loaded + prefetched == 0) return
    if (!divisor) divisor = 1
    unrolled[++loops] = divisor
    divisor = loaded ? greatest_divisor(divisor, loaded) : divisor
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && names[j] < names[j - 1]; j--) { swap = names[j]; names[j] = names[j - 1]; names[j - 1] = swap }
    kind[loops] = kind_of(n, names)
    vectors_of[loops] = packed
    bytes_stored[loops] = stored + streamed
    sums = sums || (packed && loaded && !(stored + streamed))
    named[loops] = prefetched + streamed
    text[loops] = prefetched " " streamed " " stored " " signature(n, names, packed ? 1 : divisor)
    shape[loops] = signature(n, names, unrolled[loops])
    sub(/^load [^ ]* /, "", shape[loops])
}

# Whether another loop does the work of loop i on more elements at once: the compiler made it for the elements that remain.
function remainder(i,   j) {
    if (named[i]) return 0
    for (j = 1; j <= loops; j++)
        if (vectors_of[j] && (vectors_of[i] ? shape[i] == shape[j] && unrolled[i] < unrolled[j] : kind[i] == kind[j])) return 1
    return 0
}

# Whether loop i is the one over passes around loops that sum: with vectors, but it stores one sum.
function over_passes(i) {
    return sums && vectors_of[i] && bytes_stored[i] > 0 && bytes_stored[i] <= 8
}

# Whether instructions first to last call nothing and jump to at most one place outside: a loop around another loop, whose code
# lies elsewhere, jumps to several.
function innermost(first, last,   i, outside) {
    for (i = first; i <= last; i++) {
        if (op[i] ~ call) return 0
        if (!(i in target) || target[i] >= first && target[i] <= last || target[i] == outside) continue
        if (outside) return 0
        outside = target[i]
    }
    return 1
}

# Whether instructions first to last are a loop without a loop in it.
function is_inner(first, last,   j) {
    for (j in ends) if (j + 0 != first && j + 0 >= first && ends[j] <= last) return 0
    return innermost(first, last)
}

function finish(   i, t, header) {
    for (i = 1; i <= size; i++) {
        vectors[i] = vectors[i - 1] + (args[i] ~ vector || op[i] ~ stream || op[i] ~ prefetch || writes_word(i))
        if (op[i] !~ jump || !match(args[i], /[0-9a-f]+ </)) continue
        t = substr(args[i], RSTART, RLENGTH - 2)
        sub(/^0+/, "", t)
        target[i] = t in at ? at[t] : -1
        if (target[i] > 0 && target[i] <= i) {
            ends[target[i]] = i
            if (!(target[i] in nearest)) nearest[target[i]] = i
        }
    }
    for (header in ends) if (vectors[ends[header]] == vectors[header - 1]) delete ends[header]
    for (header in ends) {
        # Code that lies elsewhere may also enter a loop by a jump backwards: then its nearest end counts, if it stores before.
        if (is_inner(header + 0, ends[header])) describe(header + 0, ends[header], 0)
        else if (is_inner(header + 0, nearest[header])) describe(header + 0, nearest[header], 1)
    }
    stack = "%rsp|%rip"
    split("", at); split("", ends); split("", nearest); split("", target); size = 0; vectors[0] = 0
}

/^[0-9a-f]+ <.*>:$/ { finish(); next }

/^ *[0-9a-f]+:[ \t]/ {
    line = $0
    match(line, /^ *[0-9a-f]+/)
    address = substr(line, 1, RLENGTH)
    gsub(/^ *0*/, "", address)
    line = substr(line, RLENGTH + 2)
    gsub(/^[ \t]+/, "", line)
    sub(/^(bnd|notrack|lock|rep|repz|repnz) +/, "", line)
    at[address] = ++size
    match(line, /^[^ \t]+/)
    op[size] = substr(line, 1, RLENGTH)
    args[size] = substr(line, RLENGTH + 1)
    gsub(/^[ \t]+|[ \t]+$/, "", args[size])
    sub(/[ \t]*#.*$/, "", args[size])
    # A function with a frame pointer keeps values there that do not fit into registers.
    if (args[size] == "%rsp,%rbp") stack = "%rsp|%rip|%rbp"
}

END {
    finish()
    for (i = 1; i <= loops; i++) if (!over_passes(i)) print (remainder(i) ? "remainder" : vectors_of[i] ? "packed" : "scalar") " " text[i]
}
