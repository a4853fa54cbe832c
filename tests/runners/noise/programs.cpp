/* Programs whose forecasts are compared with measured ratios: forecasts.py, docs/reports/forecast.md.

       g++ -O2 -g -o programs programs.cpp;  ./programs list | tree | hash | graph | sort | transpose | strings | update | stream | queue */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

static std::mt19937_64 engine(1);

/* A linked list of 1.5 million nodes in random order, walked five times. */
static uint64_t list()
{
    struct node {
        node *next;
        uint64_t value[7];
    };
    std::vector<node> nodes(1500000);
    std::vector<uint32_t> order(nodes.size());
    for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), engine);
    for (size_t i = 0; i < order.size(); i++) nodes[order[i]].next = &nodes[order[(i + 1) % order.size()]];
    const node *at = nodes.data();
    uint64_t sum = 0;
    for (size_t i = 0; i < 5 * nodes.size(); i++, at = at->next) sum += at->value[0];
    return sum;
}

/* Look-ups in a std::map. */
static uint64_t tree()
{
    std::map<uint64_t, uint64_t> map;
    for (int i = 0; i < 400000; i++) map[engine() % 1000000] += 1;
    uint64_t sum = 0;
    for (int i = 0; i < 600000; i++) {
        const auto found = map.find(engine() % 1000000);
        sum += found == map.end() ? 0 : found->second;
    }
    return sum;
}

/* Counts of random keys in a std::unordered_map. */
static uint64_t hash()
{
    std::unordered_map<uint64_t, uint32_t> counts;
    for (int i = 0; i < 4000000; i++) counts[engine() % 1000000]++;
    return counts.size();
}

/* Breadth-first searches of a random graph in compressed rows. */
static uint64_t graph()
{
    const uint32_t vertices = 1000000, degree = 8;
    std::vector<uint32_t> edge(static_cast<size_t>(vertices) * degree), distance(vertices), current, next;
    for (auto &to : edge) to = static_cast<uint32_t>(engine() % vertices);
    uint64_t sum = 0;
    for (uint32_t root = 0; root < 4; root++) {
        std::fill(distance.begin(), distance.end(), UINT32_MAX);
        distance[root] = 0;
        current.assign(1, root);
        for (uint32_t level = 1; !current.empty(); level++, current.swap(next)) {
            next.clear();
            for (const uint32_t from : current)
                for (uint32_t i = 0; i < degree; i++) {
                    const uint32_t to = edge[static_cast<size_t>(from) * degree + i];
                    if (distance[to] != UINT32_MAX) continue;
                    distance[to] = level;
                    next.push_back(to);
                }
            sum += next.size();
        }
    }
    return sum;
}

static uint64_t sort()
{
    std::vector<uint64_t> numbers(6000000);
    for (auto &number : numbers) number = engine();
    std::sort(numbers.begin(), numbers.end());
    return numbers[1000];
}

/* A matrix of 4096 x 4096 double precision numbers, transposed by columns. */
static uint64_t transpose()
{
    const size_t n = 4096;
    std::vector<double> from(n * n, 1.0), to(n * n);
    for (int repetition = 0; repetition < 2; repetition++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < n; k++) to[k * n + i] = from[i * n + k];
    return static_cast<uint64_t>(to[n]);
}

/* Short strings, sorted. */
static uint64_t strings()
{
    std::vector<std::string> words;
    for (int i = 0; i < 700000; i++) words.push_back("a string of the heap, number " + std::to_string(engine() % 1000000));
    std::sort(words.begin(), words.end());
    return words[1000].size();
}

/* Random updates of a table of 256 MiB. */
static uint64_t update()
{
    std::vector<uint64_t> table(1 << 25);
    uint64_t at = 1;
    for (int i = 0; i < 20000000; i++) {
        at = at * 6364136223846793005U + 1442695040888963407U;
        table[at >> 39] ^= at;
    }
    return table[1];
}

/* A triad of 3 x 64 MiB, ten times. */
static uint64_t stream()
{
    const size_t n = 8 << 20;
    std::vector<double> a(n, 1.0), b(n, 2.0), c(n, 3.0);
    for (int repetition = 0; repetition < 10; repetition++)
        for (size_t i = 0; i < n; i++) a[i] = b[i] + 0.5 * c[i] + a[i] * 1e-9;
    return static_cast<uint64_t>(a[n / 2]);
}

/* A simulation of events in a heap of 64 MiB. */
static uint64_t queue()
{
    std::vector<std::pair<uint64_t, uint64_t>> storage;
    storage.reserve(4 << 20);
    std::priority_queue<std::pair<uint64_t, uint64_t>> events({}, std::move(storage));
    for (uint64_t i = 0; i < 3000000; i++) events.emplace(engine() >> 20, i);
    for (int i = 0; i < 1500000; i++) {
        const auto event = events.top();
        events.pop();
        events.emplace(event.first - engine() % 1000000, event.second);
    }
    return events.top().second;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        uint64_t (*run)();
    } programs[] = {{"list", list},           {"tree", tree},       {"hash", hash},     {"graph", graph},   {"sort", sort},
                    {"transpose", transpose}, {"strings", strings}, {"update", update}, {"stream", stream}, {"queue", queue}};
    for (const auto &program : programs)
        if (count == 2 && std::strcmp(words[1], program.name) == 0) {
            std::printf("%llu\n", static_cast<unsigned long long>(program.run()));
            return 0;
        }
    std::fputs("error: name a program\n", stderr);
    return 2;
}
