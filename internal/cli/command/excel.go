package command

import (
	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
)

const excelFlag = "excel"

// excelSeparators are the words of --excel. The first one stands for the flag alone.
func excelSeparators() []string { return []string{"auto", "semicolon", "comma"} }

func asExcel(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup(excelFlag)
	return f != nil && f.Changed
}

// excelSeparator checks --excel and returns what separates cells, 0 if it was not given.
func excelSeparator(cmd *cobra.Command, a *app.App, jq string, raw bool) (byte, error) {
	if !asExcel(cmd) {
		return 0, nil
	}
	other := ""
	switch asked := cmd.Flags().Lookup("output"); {
	case jq != "":
		other = "--jq"
	case cmd.Flags().Lookup("json").Changed:
		other = "--json"
	case asked.Changed && asked.Value.String() != string(render.CSV):
		other = "-o " + asked.Value.String()
	case raw:
		return 0, Usagef("use `-o csv --csv-raw` for other programs than spreadsheets", "--excel protects identifiers, and --csv-raw does not: give one of them")
	}
	if other != "" {
		return 0, Usagef("omit "+other, "--excel can't be used with %s", other)
	}
	switch cmd.Flags().Lookup(excelFlag).Value.String() {
	case "semicolon":
		return ';', nil
	case "comma":
		return ',', nil
	}
	separator, reason := config.ListSeparator(a.Getenv)
	name := "comma"
	if separator == ';' {
		name = "semicolon"
	}
	a.IO.Detail("Separating cells by %s: %s; --excel=semicolon or --excel=comma sets it", name, reason)
	return separator, nil
}
