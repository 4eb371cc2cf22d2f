# PowerShell completion for waybill. Words are taken from the parsed line and are not
# evaluated; what is inserted is quoted where it must be.

Register-ArgumentCompleter -Native -CommandName waybill -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $before = @()
    $word = ''
    foreach ($element in $commandAst.CommandElements | Select-Object -Skip 1) {
        if ($element.Extent.StartOffset -ge $cursorPosition) {
            break
        }
        $text = $element.Extent.Text
        if ($element -is [System.Management.Automation.Language.StringConstantExpressionAst]) {
            $text = $element.Value
        }
        if ($element.Extent.EndOffset -ge $cursorPosition) {
            $word = $text
            break
        }
        $before += $text
    }
    $flag = ''
    if ($word -match '^-[^=]*=') {
        $flag = $Matches[0]
    }
    if ($word -eq '' -and $PSVersionTable.PSVersion -lt [version]'7.3') {
        $word = '""' # an empty word would not be passed
    }
    $lines = @(& waybill __complete @before $word 2>$null)
    if ($lines.Count -eq 0 -or $lines[-1] -notmatch '^:([0-9]+)$') {
        return
    }
    $directive = [int]$Matches[1]
    if ($directive -band 8) {
        return # PowerShell completes files
    }
    $lines = @($lines | Select-Object -SkipLast 1)
    if ($lines.Count -eq 0 -and $directive -band 4) {
        return ''
    }
    foreach ($line in $lines) {
        $value, $about = $line -split "`t", 2
        if (-not $about) {
            $about = $value
        }
        $text = $flag + $value
        if ($text -notmatch '^[\p{L}\p{N}_./:=+-]+$') {
            $text = "'" + ($text -replace "(['\u2018\u2019\u201A\u201B])", '$1$1') + "'"
        }
        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
    }
}
