{#- Fills module.lua.in, the layout of all our modules, for one configuration. The recipe sets its environment
    (setup_run_environment), as `spack load` does; PAGEWISE_* describe it. All packages are one family, so that a shell has one
    configuration loaded. -#}
{%- set whatis, help, settings = [], [], [] -%}
{%- for command, change in environment_modifications -%}
{%- if command == "SetEnv" -%}
{%- set _ = settings.append('setenv("%s", "%s")' | format(change.name, change.value)) -%}
{%- if change.name.startswith("PAGEWISE_") and change.name not in ("PAGEWISE_PACKAGE", "PAGEWISE_TARGET_ANCESTORS") -%}
{%- set label = change.name[9:] | lower -%}
{%- set _ = help.append("  %-10s %s" | format(label, change.value)) -%}
{%- set _ = whatis.append('whatis("%s: %s")' | format(label, change.value)) if label not in ("version", "prefix") -%}
{%- endif -%}
{%- elif command == "PrependPath" and change.name == "LD_LIBRARY_PATH" -%}
{%- set _ = settings.append('prepend_path("LD_LIBRARY_PATH", "%s")' | format(change.value)) -%}
{%- endif -%}
{%- endfor -%}
{%- set _ = help.append("\nLoading another configuration swaps this one out.") -%}
{%- set start = ['family("pagewise")', 'prepend_path("PATH", "%s")' | format(spec.prefix.bin)] -%}
{%- set layout -%}{%- include "module.lua.in" -%}{%- endset -%}
{{ layout
    | replace("@MODULE_NAME@", spec.name)
    | replace("@MODULE_VERSION@", spec.version)
    | replace("@MODULE_DESCRIPTION@", short_description)
    | replace("@MODULE_URL@", spec.package.homepage)
    | replace("@MODULE_WHATIS@", "\n".join(whatis))
    | replace("@MODULE_HELP@", "\n".join(help))
    | replace("@MODULE_SETTINGS@", "\n".join(start + settings)) }}
