package config

import (
	"cmp"
	"slices"
	"strings"
)

// ListSeparator returns the separator of CSV cells that spreadsheets expect in the user's locale, `;` or `,`, and what
// decided it.
func ListSeparator(getenv func(string) string) (separator byte, reason string) {
	semicolon, reason := false, "no locale is set"
	names := []string{"LC_ALL", "LC_NUMERIC", "LANG"}
	if i := slices.IndexFunc(names, func(name string) bool { return getenv(name) != "" }); i >= 0 {
		locale := getenv(names[i])
		semicolon, reason = semicolons(locale), names[i]+" is "+short(locale)
	} else if s := systemListSeparator(); s != "" {
		semicolon, reason = s == ";", "the list separator of the system is "+short(s)
	}
	if semicolon {
		return ';', reason
	}
	return ',', reason
}

// semicolons reports whether a locale such as de_DE.UTF-8 separates lists with semicolons: where the decimal separator
// is a comma, and in Switzerland.
func semicolons(locale string) bool {
	locale, _, _ = strings.Cut(locale, ".")
	locale, _, _ = strings.Cut(locale, "@")
	language, territory, _ := strings.Cut(strings.ReplaceAll(locale, "-", "_"), "_")
	if language == "es" {
		return !slices.Contains(strings.Fields("DO GT HN MX NI PA PE PR SV US"), territory)
	}
	if language == "en" {
		return slices.Contains(strings.Fields("CH DE DK FI NL SE ZA"), territory)
	}
	return slices.Contains(strings.Fields(`
		af ar az be bg bs ca cs da de el et eu fa fi fo fr fy gl hr hu hy id is it ka kk ky lt lv lb mk mn nb nl nn no
		pl pt ro ru sk sl sq sr sv tg tk tr tt uk uz vi`), strings.ToLower(cmp.Or(language, "en")))
}
