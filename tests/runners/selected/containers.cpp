// A map of 200,000 nodes and a vector of 24 MiB; prints for each the bytes that are on huge pages.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

static long huge(const void *memory)
{
    static char line[8192];
    std::FILE *smaps = std::fopen("/proc/self/smaps", "r");
    long sum = 0, kib;
    bool inside = false;
    unsigned long at = reinterpret_cast<unsigned long>(memory), start, end;
    while (std::fgets(line, sizeof line, smaps)) {
        if (std::strchr("0123456789abcdef", *line) && std::sscanf(line, "%lx-%lx ", &start, &end) == 2)
            inside = start <= at && at < end;
        if (inside && std::sscanf(line, "AnonHugePages: %ld", &kib) == 1) sum += kib * 1024;
    }
    std::fclose(smaps);
    return sum;
}

__attribute__((noinline)) static void fill_map(std::map<std::uint64_t, std::uint64_t> &map)
{
    std::uint64_t key = 1;
    for (int number = 0; number < 200000; number++) map[key = key * 6364136223846793005u + 1] = key;
}

__attribute__((noinline)) static void fill_vector(std::vector<double> &vector)
{
    vector.resize(3 << 20, 1.0);
}

int main()
{
    std::map<std::uint64_t, std::uint64_t> map;
    std::vector<double> vector;
    fill_map(map);
    fill_vector(vector);
    std::printf("{\"map\": %ld, \"vector\": %ld}\n", huge(&*map.begin()), huge(vector.data()));
}
