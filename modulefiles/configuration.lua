{#- The module of one configuration. The order of the facts is that of `module whatis` and `module help`. A missing variant
    has its plain value, such as regular stores. All packages are one family, so that a shell has one configuration loaded,
    which PAGEWISE_* describe. -#}
{%- set compiler = spec["fortran"].name ~ "-" ~ spec["fortran"].version -%}
{%- set facts = [("Name", "PACKAGE", spec.name), ("Version", "VERSION", spec.version), ("Compiler", "COMPILER", compiler)] -%}
{%- set variants = [("Hugepages", "hugepages", "none"), ("Prefetch", "prefetch", "hardware"), ("Stores", "stores", "regular"), ("Loop", "loop", "explicit")] -%}
{%- for label, variant, plain in variants -%}
{%- set _ = facts.append((label, variant | upper, spec.variants[variant].value if variant in spec.variants else plain)) -%}
{%- endfor -%}
{%- if "hugepages" in spec.variants and spec.package.library_name() -%}
{%- set _ = facts.append(("Library", "LIBRARY", spec.package.library_name())) -%}
{%- endif -%}
{%- if "runtime" in spec.variants and spec.variants["runtime"].value != "compiler" -%}
{%- set _ = facts.append(("Runtime", "RUNTIME", spec.variants["runtime"].value)) -%}
{%- endif -%}
{%- if "simd" in spec.variants and spec.variants["simd"].value != "compiler" -%}
{%- set _ = facts.append(("SIMD", "SIMD", spec.variants["simd"].value)) -%}
{%- endif -%}
{#- The set of flags is a fact of the environment's toolchains, which setup/write_modules.py adds. -#}
{%- for _, change in environment_modifications if change.name == "PAGEWISE_FLAGS" -%}
{%- set _ = facts.append(("Flags", "FLAGS", change.value)) -%}
{%- endfor -%}
{%- for label, variant in [("OpenMP", "openmp"), ("PAPI", "papi"), ("MPI", "mpi")] if variant in spec.variants -%}
{%- set _ = facts.append((label, variant | upper, "on" if spec.variants[variant].value else "off")) -%}
{%- endfor -%}
{%- set _ = facts.append(("Target", "TARGET", spec.package.built_for if "hugepages" in spec.variants else spec.target)) -%}
{%- set _ = facts.append(("Hash", "HASH", spec.dag_hash())) -%}
{%- set _ = facts.append(("Builder", "BUILDER", "spack")) -%}
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
setenv("PAGEWISE_{{ variable }}", "{{ value }}")
{% endfor %}
setenv("PAGEWISE_PREFIX", "{{ spec.prefix }}")
{%- if "hugepages" in spec.variants and spec.package.built_for_ancestors %}

setenv("PAGEWISE_TARGET_ANCESTORS", "{{ spec.package.built_for_ancestors }}")
{%- endif %}
{# Fujitsu's libmpg reads these when a program starts. Paging on demand, so that the first touch places a page (Feldman et
   al., PEARC '23, appendix A). Freed memory is returned and reused as without the library. #}
{%- set libmpg = {"fjmpg": "hugetlbfs", "fjmpg-thp": "thp", "fjmpg-none": "none"} -%}
{%- if "hugepages" in spec.variants and spec.variants["hugepages"].value in libmpg %}

setenv("XOS_MMM_L_HPAGE_TYPE", "{{ libmpg[spec.variants["hugepages"].value] }}")
setenv("XOS_MMM_L_LPG_MODE", "base+stack")
setenv("XOS_MMM_L_PAGING_POLICY", "demand:demand:demand")
setenv("XOS_MMM_L_ARENA_FREE", "1")
setenv("XOS_MMM_L_ARENA_LOCK_TYPE", "1")
prepend_path("LD_LIBRARY_PATH", "{{ spec["fujitsu-libmpg"].prefix }}/lib64")
{%- endif %}
