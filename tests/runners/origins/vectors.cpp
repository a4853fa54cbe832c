// Memory of the standard library, which allocates for its callers.
#include <map>
#include <vector>

static double sum(const std::vector<double> &values)
{
    double total = 0;
    for (int k = 0; k < 20; k++)
        for (std::size_t i = 0; i < values.size(); i += 512) total += values[i];
    return total;
}

__attribute__((noinline)) static double fill_vector()
{
    std::vector<double> values(100 * 512, 1.0);
    return sum(values);
}

__attribute__((noinline)) static double grow_vector()
{
    std::vector<double> values;
    for (int i = 0; i < 60 * 512; i++) values.push_back(i);
    return sum(values);
}

struct Large {
    char bytes[2048];
};

__attribute__((noinline)) static int fill_map()
{
    std::map<int, Large> tree;
    int total = 0;
    for (int i = 0; i < 100; i++) tree[i].bytes[0] = 1;
    for (int k = 0; k < 20; k++)
        for (const auto &entry : tree) total += entry.second.bytes[0];
    return total;
}

int main()
{
    return fill_vector() + grow_vector() + fill_map() == 0;
}
