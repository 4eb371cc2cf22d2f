package xlsx_test

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Whatever stands in a sheet, it is refused, or its texts are those that
// encoding/xml finds.
func FuzzSheet(f *testing.F) {
	f.Add(`<row r="1"><c r="A1" t="inlineStr"><is><t>a &amp; b</t></is></c><c t="str"><v>_x000D_</v></c></row>`)
	f.Add(`<row><c t="s"><v>0</v></c><c s="1"><v>1E5</v></c><!-- --><c t="d"><v><![CDATA[x]]></v></c></row></sheetData><mergeCells><mergeCell ref="A1:B2"/></mergeCells><sheetData>`)
	f.Add(`<row><c t="inlineStr"><is><t>0</t></is><v>0</v></c></row>`)
	f.Fuzz(func(t *testing.T, rows string) {
		p := workbook(rows).strings("<t>shared</t>").styles("00000")
		cells, err := read(t, p.pack(t), 0)
		if err != nil {
			if wrong := (*xlsx.Error)(nil); !errors.As(err, &wrong) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var sheet struct {
			Rows []struct {
				Cells []struct {
					Type   string `xml:"t,attr"`
					Inline struct {
						Texts []string `xml:"t"`
						Runs  []struct {
							Texts []string `xml:"t"`
						} `xml:"r"`
					} `xml:"is"`
				} `xml:"c"`
			} `xml:"sheetData>row"`
		}
		d := xml.NewDecoder(strings.NewReader(p["xl/worksheets/sheet1.xml"]))
		d.CharsetReader = nil
		if err := d.Decode(&sheet); err != nil {
			return // stricter about names and attributes, of which none is text
		}
		all := map[string]bool{}
		for _, text := range cells {
			all[text] = true
		}
		for _, row := range sheet.Rows {
			for _, c := range row.Cells {
				text := strings.Join(c.Inline.Texts, "")
				for _, r := range c.Inline.Runs {
					text += strings.Join(r.Texts, "")
				}
				if c.Type == "inlineStr" && len(c.Inline.Runs) == 0 && text != "" && !strings.Contains(text, "_x") && !all[text] {
					t.Errorf("%q is not among %q", text, cells)
				}
			}
		}
	})
}
