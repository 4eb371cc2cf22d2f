package xlsx_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

// parts are the parts of a workbook by name.
type parts map[string]string

const (
	transitional = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	officeRel    = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
)

// workbook returns the parts of a workbook with one sheet of those rows.
func workbook(rows string) parts { return workbookOf(`<sheetData>` + rows + `</sheetData>`) }

// workbookOf is workbook with what the root of the sheet has.
func workbookOf(sheet string) parts {
	return parts{
		"[Content_Types].xml":        `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels":                `<Relationships><Relationship Id="rId1" Type="` + officeRel + `officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml":            `<?xml version="1.0" encoding="UTF-8"?><workbook ` + transitional + `><sheets><sheet name="Orders" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId1" Type="` + officeRel + `worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml":   `<worksheet ` + transitional + `>` + sheet + `</worksheet>`,
	}
}

// with adds a part that the workbook refers to.
func (p parts) with(kind, name, text string) parts {
	p = maps.Clone(p)
	p["xl/"+name] = text
	const end = "</Relationships>"
	p["xl/_rels/workbook.xml.rels"] = strings.Replace(p["xl/_rels/workbook.xml.rels"], end,
		fmt.Sprintf(`<Relationship Id=%q Type=%q Target=%q/>`, kind, officeRel+kind, name)+end, 1)
	return p
}

// strings adds shared strings, each the inside of an si.
func (p parts) strings(all ...string) parts {
	return p.with("sharedStrings", "sharedStrings.xml", `<sst `+transitional+`><si>`+strings.Join(all, "</si><si>")+`</si></sst>`)
}

// styles adds styles with those number formats, 1 being the first.
func (p parts) styles(codes ...string) parts {
	var formats, xfs strings.Builder
	for i, code := range codes {
		fmt.Fprintf(&formats, `<numFmt numFmtId="%d" formatCode="%s"/>`, 164+i, strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;").Replace(code))
		fmt.Fprintf(&xfs, `<xf numFmtId="%d"/>`, 164+i)
	}
	return p.with("styles", "styles.xml", `<styleSheet `+transitional+`><numFmts>`+formats.String()+`</numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/>`+xfs.String()+`</cellXfs></styleSheet>`)
}

func (p parts) pack(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(p)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, p[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// open opens a workbook, which is closed with the test.
func open(t testing.TB, data []byte) (*xlsx.Workbook, error) {
	t.Helper()
	b, err := xlsx.Open(bytes.NewReader(data), int64(len(data)), xlsx.Options{Temp: func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "strings") }})
	if err == nil {
		t.Cleanup(b.Close)
	}
	return b, err
}

// read returns what the cells of a sheet show, by address: with an asterisk, and
// the loss, where something may be lost.
func read(t testing.TB, data []byte, sheet int) (map[string]string, error) {
	t.Helper()
	b, err := open(t, data)
	if err != nil {
		return nil, err
	}
	rows, err := b.Rows(sheet)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cells := map[string]string{}
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err != nil {
			return cells, err
		}
		for _, c := range row.Cells {
			s := b.Shown(c)
			if s.Loss != xlsx.None {
				s.Text += fmt.Sprintf("*%d", s.Loss)
			}
			cells[xlsx.Address(c.Column, row.Number)] = s.Text
		}
	}
}
