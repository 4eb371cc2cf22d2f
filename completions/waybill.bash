# bash completion for waybill. The program reads the line: no word of it is evaluated,
# and what it prints is escaped.

_waybill()
{
    local IFS=$' \t\n' options line
    COMPREPLY=()
    {
        IFS= read -r options
        while IFS= read -r line; do
            COMPREPLY[${#COMPREPLY[@]}]=$line
        done
    } < <(waybill __complete_bash "${COMP_TYPE:-9}" "${COLUMNS:-80}" "${COMP_LINE:0:$COMP_POINT}" "$2" 2>/dev/null)
    case $options in *nospace*) compopt -o nospace 2>/dev/null ;; esac
    case $options in *nosort*) compopt -o nosort 2>/dev/null ;; esac
    case $options in *nofiles*) compopt +o default 2>/dev/null ;; esac
}

complete -o default -F _waybill waybill
