{#- The module of one configuration. The recipe sets its environment (setup_run_environment), as `spack load` does. The order
    of the facts is that of `module whatis` and `module help`. All packages are one family, so that a shell has one
    configuration loaded, which PAGEWISE_* describe. -#}
{%- set labels = {"PACKAGE": "Name", "VERSION": "Version", "COMPILER": "Compiler", "HUGEPAGES": "Hugepages", "PREFETCH": "Prefetch", "STORES": "Stores", "LOOP": "Loop", "LIBRARY": "Library", "RUNTIME": "Runtime", "SIMD": "SIMD", "SECTOR": "Sector", "FLAGS": "Flags", "OPENMP": "OpenMP", "PAPI": "PAPI", "MPI": "MPI", "TARGET": "Target", "HASH": "Hash", "BUILDER": "Builder"} -%}
{%- set values, facts = {}, [] -%}
{%- for command, change in environment_modifications if command == "SetEnv" -%}
{%- set _ = values.update({change.name: change.value}) -%}
{%- endfor -%}
{%- for name, label in labels.items() if "PAGEWISE_" ~ name in values -%}
{%- set _ = facts.append((label, "PAGEWISE_" ~ name, values.pop("PAGEWISE_" ~ name))) -%}
{%- endfor -%}
-- {{ spec.name }}, built by Spack.
{% for label, variable, value in facts %}
whatis("{{ label }}: {{ value }}")
{% endfor %}

help([[
{{ short_description }}

{% for label, variable, value in facts %}
  {{ "%-10s" | format(label | lower if label != "Name" else "package") }} {{ value }}
{% endfor %}
  prefix     {{ spec.prefix }}

Loading another configuration swaps this one out.
]])

family("pagewise")

prepend_path("PATH", "{{ spec.prefix.bin }}")
{% for label, variable, value in facts %}
setenv("{{ variable }}", "{{ value }}")
{% endfor %}
{% for variable, value in values.items() %}
setenv("{{ variable }}", "{{ value }}")
{% endfor %}
{% for command, change in environment_modifications if command == "PrependPath" and change.name == "LD_LIBRARY_PATH" %}
prepend_path("LD_LIBRARY_PATH", "{{ change.value }}")
{% endfor %}
