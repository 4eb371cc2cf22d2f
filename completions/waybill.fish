# fish completion for waybill. Words are passed without their quotes and are not
# evaluated; fish escapes what is inserted.

# Finds what the line may go on with, and fails where files are to be completed.
function __waybill_find
    set -g __waybill_found
    set -l before (commandline -opc)
    set -l raw (commandline -ct)
    set -l word (string unescape -- $raw)
    or set word (string replace -r '^["\']' '' -- $raw)
    set -l lines (waybill __complete $before[2..-1] "$word" 2>/dev/null)
    string match -qr '^:[0-9]+$' -- $lines[-1]
    or return 1
    set -l directive (string sub -s 2 -- $lines[-1])
    set -e lines[-1]
    if test (math "floor($directive / 8) % 2") -eq 1
        return 1
    end
    if test (count $lines) -eq 0
        test (math "floor($directive / 4) % 2") -eq 1
        return
    end
    set -l flag (string match -r '^-[^=]*=' -- $word)
    set -g __waybill_found $flag$lines
    if test -z "$flag"
        set -g __waybill_found $lines
    end
    # fish adds a space to the only value, unless it ends in = or the like.
    if test (count $lines) -eq 1 -a (math "floor($directive / 2) % 2") -eq 1
        set -l value (string split -m 1 \t -- $__waybill_found)[1]
        if not string match -qr '[@=/:.,]$' -- $value
            set -g __waybill_found $value $value,
        end
    end
    return 0
end

complete -c waybill -e
complete -c waybill -n __waybill_find -f -k -a '$__waybill_found'
