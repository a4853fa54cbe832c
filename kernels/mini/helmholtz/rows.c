#include "rows_search.h"

/* ln(Gamma) below which corrections are too small to make a quantity negative. */
static const double ln_least_coupling = -1.2;

/* The default first guess: the temperature at which an ideal gas, or radiation, alone would have the given quantity. */
INLINE v4 guess(table_t *table, int mode, v4 dens, v4 abar, v4 zbar, v4 goal)
{
    v4 particles = table->gas_constant * (1.0 + zbar) / abar, a = splat(table->radiation), gas, light;
    v4 least = splat(1.0e-300);
    if (mode == PW_HELMHOLTZ_ENERGY) {
        gas = logarithm(larger(goal / (1.5 * particles), least));
        light = 0.25 * logarithm(larger(goal * dens / a, least));
    } else if (mode == PW_HELMHOLTZ_PRESSURE) {
        gas = logarithm(larger(goal / (dens * particles), least));
        light = 0.25 * logarithm(larger(3.0 * goal / a, least));
    } else {
        gas = (goal / particles - 2.5 - table->ln_sackur_tetrode + logarithm(dens) - 2.5 * logarithm(abar)) * (2.0 / 3.0);
        light = (1.0 / 3.0) * logarithm(larger(0.75 * goal * dens / a, least));
        light = choose(goal > 0.0, light, gas);
    }
    return exponential(smaller(larger(smaller(gas, light), splat(table->first_v)), splat(table->last_v)));
}

/* Read a chunk's n zones and locate them in the table. Returns the fault of the first bad one. */
NOINLINE int32_t load_rows(table_t *table, int mode, int64_t n, const double *const *columns, struct place *place,
                         double *given, int64_t *bad)
{
    int64_t padded = (n + lanes - 1) / lanes * lanes;
    for (int64_t i = 0; i < padded; i++) {
        int64_t from = i < n ? i : n - 1;
        place->dens[i] = columns[c_dens][from];
        place->temp[i] = columns[c_temp][from];
        place->abar[i] = columns[c_abar][from];
        place->zbar[i] = columns[c_zbar][from];
    }
    if (mode != PW_HELMHOLTZ_TEMPERATURE) {
        const double *from = columns[mode == PW_HELMHOLTZ_ENERGY ? c_eint : mode == PW_HELMHOLTZ_PRESSURE ? c_pres : c_entr];
        for (int64_t i = 0; i < padded; i++) given[i] = from[i < n ? i : n - 1];
    }
    const double lowest = table->lowest, highest = table->highest, coldest = table->coldest, hottest = table->hottest;
    m4 fine = {-1, -1, -1, -1};
    for (int64_t i = 0; i < padded; i += lanes) {
        v4 dens = load(place->dens + i), abar = load(place->abar + i), zbar = load(place->zbar + i);
        v4 x = dens * zbar / abar, temp = load(place->temp + i);
        fine &= (dens > 0.0) & (abar > 0.0) & (zbar > 0.0) & (x >= lowest) & (x <= highest);
        if (mode == PW_HELMHOLTZ_TEMPERATURE) {
            fine &= (temp >= coldest) & (temp <= hottest);
        } else {
            v4 goal = load(given + i);
            fine &= (goal - goal) == 0.0;
            v4 best = smaller(larger(temp, splat(coldest)), splat(hottest));
            m4 none = ~(temp > 0.0);
            if (any(none)) best = choose(none, guess(table, mode, dens, abar, zbar, goal), best);
            store(place->temp + i, best);
        }
    }
    if (any(~fine)) {
        for (int64_t i = 0; i < n; i++) {
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): filled by vectors above. */
            double x = place->dens[i] * place->zbar[i] / place->abar[i];
            int32_t wrong = PW_HELMHOLTZ_FINE;
            *bad = i;
            if (!(place->dens[i] > 0.0))
                wrong = PW_HELMHOLTZ_DENSITY;
            else if (!(place->abar[i] > 0.0) || !(place->zbar[i] > 0.0))
                wrong = PW_HELMHOLTZ_COMPOSITION;
            else if (!(x >= lowest && x <= highest))
                wrong = PW_HELMHOLTZ_DENSITY_RANGE;
            else if (mode == PW_HELMHOLTZ_TEMPERATURE && !(place->temp[i] >= coldest && place->temp[i] <= hottest))
                wrong = PW_HELMHOLTZ_TEMPERATURE_RANGE;
            else if (mode != PW_HELMHOLTZ_TEMPERATURE && !(given[i] - given[i] == 0.0))
                wrong = PW_HELMHOLTZ_GIVEN;
            if (wrong != PW_HELMHOLTZ_FINE) return wrong;
        }
    }
    find(table, place, padded / lanes);
    return PW_HELMHOLTZ_FINE;
}

/* Complete a zone again without Coulomb corrections, which is valid where they would make pressure or energy negative.
   Unless its state with corrections is invalid (`must`), that state stays if it is the only valid one, or no farther from
   the first guess `hint` (0 or less: none). */
NOINLINE int32_t exclude_invalid(table_t *table, int mode, int few, double *const *columns, int64_t zone, double given, double hint,
                           bool must)
{
    const double rounding = 1.0e-10;
    struct pw_helmholtz_table plain = *table;
    double lane[c_npos + 1] = {0}, with[c_npos + 1];
    int64_t bad;
    plain.coulomb = 0;
    lane[c_dens] = columns[c_dens][zone];
    lane[c_temp] = hint;
    lane[c_abar] = columns[c_abar][zone];
    lane[c_zbar] = columns[c_zbar][zone];
    lane[mode == PW_HELMHOLTZ_ENERGY ? c_eint : mode == PW_HELMHOLTZ_PRESSURE ? c_pres : c_entr] = given;
    int32_t wrong = pw_helmholtz_rows(&plain, mode, few, 1, 1, lane, &bad);
    if (!must) {
        if (wrong || !(hint * hint < columns[c_temp][zone] * lane[c_temp])) return PW_HELMHOLTZ_FINE;
        memcpy(with, lane, sizeof lane);
        if (pw_helmholtz_rows(table, PW_HELMHOLTZ_TEMPERATURE, 1, 1, 1, with, &bad)) return PW_HELMHOLTZ_FINE;
        int free = mode == PW_HELMHOLTZ_PRESSURE ? c_eint : c_pres;
        if (!(with[free] - lane[free] < rounding * lane[free] && lane[free] - with[free] < rounding * lane[free]))
            return PW_HELMHOLTZ_FINE;
    }
    if (wrong) return wrong;
    for (int c = 0; c <= (few ? c_cs : c_npos); c++) columns[c][zone] = lane[c];
    return PW_HELMHOLTZ_FINE;
}

/* Complete a chunk that was read; `ahead` as in look_up. */
NOINLINE int32_t complete(table_t *table, int mode, int few, int64_t n, double *const *columns, struct place *place,
                          const double *given, const int64_t *next_cells, int64_t *bad)
{
    COLUMN coulomb[chunk], ambiguous[chunk], rest[c_npos + 1][chunk];
    double hint[chunk];
    double *out[c_npos + 1];
    struct electrons electrons;
    int64_t n_groups = (n + lanes - 1) / lanes;

    if (mode != PW_HELMHOLTZ_TEMPERATURE) {
        struct search s;
        COLUMN wrong[chunk];
        memcpy(hint, columns[c_temp], (size_t)n * sizeof(double));
        begin_search(table, place, given, mode, n_groups, &s, ambiguous);
        /* Lanes beyond n repeat zone n and are searched for too, so that groups are complete. */
        if (mode == PW_HELMHOLTZ_ENERGY)
            search_energy(table, &s, lanes * n_groups, next_cells, few, place->temp, wrong);
        else if (mode == PW_HELMHOLTZ_PRESSURE)
            search_pressure(table, &s, lanes * n_groups, next_cells, few, place->temp, wrong);
        else
            search_entropy(table, &s, lanes * n_groups, next_cells, few, place->temp, wrong);
        next_cells = NULL;
        for (int64_t i = 0; i < n; i++) {
            *bad = i;
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the search fills it by vectors. */
            if (wrong[i] > 0.0) return (int32_t)wrong[i];
        }
        find(table, place, n_groups);
        memcpy(columns[c_temp], place->temp, (size_t)n * sizeof(double));
    }

    /* Complete groups are stored at once; given quantities stay unchanged. */
    bool whole = n == lanes * n_groups;
    for (int c = 0; c <= c_npos; c++) out[c] = whole ? columns[c] : rest[c];
    int kept = mode == PW_HELMHOLTZ_ENERGY ? c_eint : mode == PW_HELMHOLTZ_PRESSURE ? c_pres : c_entr;
    if (mode != PW_HELMHOLTZ_TEMPERATURE) out[kept] = rest[kept];
    for (int64_t i = 0; i < lanes * n_groups; i++) coulomb[i] = table->coulomb ? 1.0 : 0.0;
    look_up(table, place, next_cells, few, n_groups, &electrons);
    if (few) {
        assemble_few(table, place, &electrons, n_groups, coulomb, out);
    } else {
        look_up_positrons(table, place, n_groups, &electrons);
        assemble_all(table, place, &electrons, n_groups, coulomb, out);
    }
    if (!whole) {
        for (int c = c_eint; c <= (few ? c_cs : c_npos); c++)
            if (mode == PW_HELMHOLTZ_TEMPERATURE || c != kept) memcpy(columns[c], rest[c], (size_t)n * sizeof(double));
    }
    if (mode == PW_HELMHOLTZ_TEMPERATURE || !table->coulomb) return PW_HELMHOLTZ_FINE;

    /* With little heat and strong Coulomb binding two temperatures may exist, the lower one without corrections. */
    for (int64_t i = 0; i < n; i++) {
        bool inconsistent = coulomb[i] <= 0.0;
        if (!inconsistent && !(hint[i] > 0.0 && ambiguous[i] > 0.0 && place->ln_coupling[i] > ln_least_coupling)) continue;
        int32_t wrong = exclude_invalid(table, mode, few, columns, i, given[i], hint[i], inconsistent);
        *bad = i;
        if (wrong) return wrong;
    }
    return PW_HELMHOLTZ_FINE;
}

/* The columns of a chunk; returns its zones. */
INLINE int64_t point_at(double *state, int64_t stride, int64_t first, int64_t n, double **columns)
{
    for (int c = 0; c <= c_npos; c++) columns[c] = state + c * stride + first;
    return n - first < chunk ? n - first : chunk;
}

#if defined(PW_PREFETCH_SOFTWARE)

/* Each chunk is read while the previous one waits, so that the cells of zones at `distance` are known. */
int32_t pw_helmholtz_rows(table_t *table, int32_t mode, int32_t few, int64_t n, int64_t stride, double *state, int64_t *zone)
{
    struct place place[2];
    COLUMN given[2][chunk];
    double *columns[2][c_npos + 1];
    int64_t part[2], next_cells[chunk], bad = 0, distance = table->distance < chunk ? table->distance : chunk;
    int32_t wrong[2];
    if (n < 1) return PW_HELMHOLTZ_FINE;
    part[0] = point_at(state, stride, 0, n, columns[0]);
    wrong[0] = load_rows(table, mode, part[0], (const double *const *)columns[0], &place[0], given[0], zone);
    if (wrong[0]) return wrong[0];
    for (int64_t first = 0, now = 0; first < n; first += chunk, now = 1 - now) {
        int64_t next = 1 - now, cells = part[now];
        wrong[next] = PW_HELMHOLTZ_FINE;
        if (first + chunk < n) {
            part[next] = point_at(state, stride, first + chunk, n, columns[next]);
            wrong[next] =
                load_rows(table, mode, part[next], (const double *const *)columns[next], &place[next], given[next], &bad);
            if (!wrong[next]) cells += part[next];
        }
        for (int64_t i = 0; i < chunk; i++) {
            int64_t at = i + distance < cells ? i + distance : cells - 1;
            next_cells[i] = at < chunk ? place[now].cell[at] : place[next].cell[at - chunk];
        }
        wrong[now] = complete(table, mode, few, part[now], columns[now], &place[now], given[now], next_cells, zone);
        *zone += first;
        if (wrong[now]) return wrong[now];
        *zone = bad + first + chunk;
        if (wrong[next]) return wrong[next];
    }
    return PW_HELMHOLTZ_FINE;
}

#else

int32_t pw_helmholtz_rows(table_t *table, int32_t mode, int32_t few, int64_t n, int64_t stride, double *state, int64_t *zone)
{
    struct place place;
    COLUMN given[chunk];
    double *columns[c_npos + 1];
    for (int64_t first = 0; first < n; first += chunk) {
        int64_t part = point_at(state, stride, first, n, columns);
        int32_t wrong = load_rows(table, mode, part, (const double *const *)columns, &place, given, zone);
#if defined(PW_PREFETCH_BLOCK)
        /* All cells of the chunk, before any zone is processed. */
        for (int64_t i = 0; i < part && !wrong; i++) prefetch(table, place.cell[i], few);
#endif
        if (!wrong) wrong = complete(table, mode, few, part, columns, &place, given, NULL, zone);
        *zone += first;
        if (wrong) return wrong;
    }
    return PW_HELMHOLTZ_FINE;
}

#endif
