#compdef waybill
# zsh completion for waybill. Words are passed without their quotes and are not
# evaluated; zsh quotes what is inserted.

_waybill()
{
    local line value
    local -a lines values shown options
    local -i directive longest
    lines=("${(@f)$(waybill __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    [[ ${lines[-1]} == :<-> ]] || return 1
    directive=${lines[-1]#:}
    lines[-1]=()
    if [[ $PREFIX == -*=* ]]; then
        IPREFIX+=${PREFIX%%=*}=
        PREFIX=${PREFIX#*=}
    fi
    if (( directive & 8 )); then
        _files -g "*.(${(j:|:)lines})"
        return
    fi
    if (( ! $#lines )); then
        (( directive & 4 )) && return 1
        _files
        return
    fi
    for line in "${(@)lines}"; do
        values+=("${line%%$'\t'*}")
        (( ${#values[-1]} > longest )) && longest=${#values[-1]}
    done
    for line in "${(@)lines}"; do
        value=${line%%$'\t'*}
        [[ $line == *$'\t'* ]] && value="${(r:longest:)value}  ${line#*$'\t'}"
        shown+=("$value")
    done
    (( directive & 2 )) && options+=(-S '')
    [[ "${(j::)lines}" == *$'\t'* ]] && options+=(-l)
    compadd -V waybill "${(@)options}" -d shown -a -- values
}

if [[ $funcstack[1] == _waybill ]]; then
    _waybill "$@"
else
    compdef _waybill waybill
fi
