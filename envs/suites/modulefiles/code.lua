{#- The module of a third-party code. It does not set PAGEWISE_PACKAGE, because it is not a configuration of ours. -#}
-- {{ spec.name }} {{ spec.version }}{{ ", from the system" if spec.external else ", built by Spack" }}.
whatis("Name: {{ spec.name }}")
whatis("Version: {{ spec.version }}")

help([[
{{ short_description }}

  prefix     {{ spec.prefix }}
]])

prepend_path("PATH", "{{ spec.prefix.bin }}")
setenv("PAGEWISE_SUITE", "{{ spec.name }}")
setenv("PAGEWISE_SUITE_VERSION", "{{ spec.version }}")
setenv("PAGEWISE_SUITE_HASH", "{{ spec.dag_hash() }}")
setenv("PAGEWISE_SUITE_PREFIX", "{{ spec.prefix }}")
