{#- Fills module.lua.in for a third-party code. It does not set PAGEWISE_PACKAGE, because it is not a configuration of pagewise. -#}
{%- set settings = ['prepend_path("PATH", "%s")' | format(spec.prefix.bin)] -%}
{%- for name, value in (("", spec.name), ("_VERSION", spec.version), ("_HASH", spec.dag_hash()), ("_PREFIX", spec.prefix)) -%}
{%- set _ = settings.append('setenv("PAGEWISE_SUITE%s", "%s")' | format(name, value)) -%}
{%- endfor -%}
{%- set layout -%}{%- include "module.lua.in" -%}{%- endset -%}
{{ layout
    | replace("@MODULE_NAME@", spec.name)
    | replace("@MODULE_VERSION@", spec.version)
    | replace("@MODULE_DESCRIPTION@", short_description)
    | replace("@MODULE_URL@", spec.package.homepage)
    | replace("@MODULE_WHATIS@", "")
    | replace("@MODULE_HELP@", "  prefix     %s" | format(spec.prefix))
    | replace("@MODULE_SETTINGS@", "\n".join(settings)) }}
