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

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

func TestCells(t *testing.T) {
	data := workbook(`
		<row r="2" hidden="1"><c r="B2" t="s"><v>0</v></c><c r="D2" t="inlineStr"><is><t>in</t><r><rPr/><t>li</t></r><rPh><t>no</t></rPh><r><t>ne</t></r></is></c></row>
		<row><c><v>7</v></c><c t="str"><f>A1</f><v>text</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c><c><f>1+1</f></c><c s="1"/><c t="s"/><c t="s"><v> </v></c><c t="b"><v/></c></row>
		<row r="9"><c r="AA9" t="s"><v>2</v></c><c r="AB9" t="d"><v>2026-11-20</v></c><c r="AC9" t="str"><f>""</f><v></v></c><c r="AD9"><v>x</v></c><c r="AE9" t="s"><v>3</v></c><c r="AF9" t="s"><v>-1</v></c><c r="AG9" t="s"><v>x</v></c><c r="AH9"><v>7</v></c></row>`).
		strings(`<t>a &amp; &lt;b&gt;&#x20AC;</t>`, `<t/>`, `<r><t xml:space="preserve"> _x000D_</t></r><r><t>_x005F_x0041__xD83D__xDE00__xD83D_</t></r><rPh><t>no</t></rPh>`).pack(t)
	got, err := read(t, data, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"B2": "a & <b>€", "D2": "inline", "A3": "7", "B3": "text", "C3": "TRUE*7", "D3": "#N/A*8", "E3": "*9",
		"AA9": " \r_x0041_😀_xD83D_", "AB9": "2026-11-20*6", "AD9": "x*10",
		"AE9": "*11", "AF9": "*11", "AG9": "*11", "AH9": "7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNumbersAsShown(t *testing.T) {
	for _, tt := range []struct{ format, number, want string }{
		{"General", "123456789012", "123456789012"},
		{"General", "1.23456789012E11", "123456789012"},
		{"General", "123456789012345", "123456789012345"},
		{"General", "1234567890123456", "1234567890123456*2"},
		{"General", "1.2345678901234568E+19", "12345678901234568000*2"},
		{"General", "1e3", "1000"},
		{"General", "-0.0", "0"},
		{"General", "12.5", "12.5*4"},
		{"General", "0.30000000000000004", "0.30000000000000004*2"},
		{"General", "", ""},
		{"General", "1,5", "1,5*10"},
		{"General", "NaN", "NaN*10"},
		{"General", "1E999999", "1E999999*10"},
		{"@", "42", "42"},
		{"0", "42", "42"},
		{"00000", "123", "00123*1"},
		{"00000", "123456", "123456"},
		{"00000", "-123", "-123*5"},
		{"000-0000", "1234567", "123-4567*1"},
		{"##-00", "7", "-07*1"},
		{`"ORD-"0000`, "17", "ORD-0017*1"},
		{`\A00;[Red]-00`, "7", "A07*1"},
		{"0.00E+00", "123456789012", "123456789012*3"},
		{"##0.0E+0", "12345", "12345*3"},
		{"#,##0", "1234567", "1234567*5"},
		{"0.00", "5", "5*5"},
		{"0%", "1", "1*5"},
		{"[<100]00;0", "7", "7*5"},
		{`General" kg"`, "7", "7*5"},
		{"[$EUR] 0", "7", " 7*1"},
		{"dd/mm/yyyy", "46346", "2026-11-20*6"},
		{"m/d/yy h:mm", "46346.3333333333", "2026-11-20T08:00:00*6"},
		{"[$-409]h:mm AM/PM;@", "0.354166666666667", "08:30:00*6"},
		{"mmm-yy", "60", "1900-02-28*6"}, // the day that never was
		{"d-mmm", "1", "1900-01-01*6"},
		{"[h]:mm", "1.5", "12:00:00*6"},
		{"yyyy", "1E+300", "1e+300*6"},
	} {
		data := workbook(`<row r="1"><c r="A1" s="1"><v>` + tt.number + `</v></c></row>`).styles(tt.format).pack(t)
		got, err := read(t, data, 0)
		if err != nil || got["A1"] != tt.want {
			t.Errorf("%s as %q: got %q, %v; want %q", tt.number, tt.format, got["A1"], err, tt.want)
		}
	}
}

// Programs write the parts in many ways that mean the same.
func TestDialects(t *testing.T) {
	plain := workbook(`<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1"><v>46346</v></c></row>`).strings(`<t>x</t>`)
	strict := parts{}
	for name, text := range plain {
		text = strings.ReplaceAll(text, "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main")
		strict[name] = strings.ReplaceAll(text, officeRel, "http://purl.oclc.org/ooxml/officeDocument/relationships/")
	}
	prefixed := workbook("")
	prefixed["xl/worksheets/sheet1.xml"] = `<x:worksheet xmlns:x="urn:x"><!-- </x:sheet --><x:sheetData><x:row r='1' ><x:c r="A1" t="s" ><x:v ><![CDATA[0]]></x:v ></x:c><x:c r="B1"><x:v>46346</x:v></x:c></x:row></x:sheetData ></x:worksheet>`
	prefixed["xl/worksheets/sheet1.xml"] = strings.ReplaceAll(prefixed["xl/worksheets/sheet1.xml"], "sheetData >", "sheetData>")
	backslashes := parts{}
	for name, text := range plain {
		backslashes[strings.ToUpper(strings.ReplaceAll(name, "/", `\`))] = strings.ReplaceAll(text, `Target="xl/`, `Target="/xl/`)
	}
	date04 := plain.with("x", "x.xml", "<x/>")
	date04["xl/workbook.xml"] = strings.Replace(date04["xl/workbook.xml"], "<sheets>", `<workbookPr date1904="1"/><sheets>`, 1)
	for name, p := range map[string]parts{"strict": strict, "prefixed": prefixed.strings(`<t>x</t>`), "backslashes": backslashes, "1904": date04} {
		got, err := read(t, p.pack(t), 0)
		if diff := cmp.Diff(map[string]string{"A1": "x", "B1": "46346"}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
	date04 = date04.styles("yyyy-mm-dd")
	date04["xl/worksheets/sheet1.xml"] = strings.Replace(date04["xl/worksheets/sheet1.xml"], `"B1"`, `"B1" s="1"`, 1)
	if got, err := read(t, date04.pack(t), 0); err != nil || got["B1"] != "2030-11-21*6" {
		t.Errorf("since 1904: %v, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	one := `<row r="1"><c r="A1" t="s"><v>0</v></c></row>`
	without := func(name string) parts {
		p := workbook(one).strings("<t>x</t>")
		delete(p, name)
		return p
	}
	container := func(stream string) []byte {
		b := make([]byte, 2048)
		copy(b, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
		b[30], b[48] = 9, 1
		for i, c := range stream {
			b[1024+128+2*i] = byte(c)
		}
		return b
	}
	whole := workbook(one).strings("<t>x</t>").pack(t)
	damaged := append([]byte(nil), whole...)
	damaged[200] ^= 0xff
	wide := workbook("")
	wide["xl/worksheets/sheet1.xml"] = "\xff\xfe<\x00w\x00"
	binary := workbook("")
	binary["_rels/.rels"] = strings.ReplaceAll(binary["_rels/.rels"], "workbook.xml", "workbook.bin")
	for name, tt := range map[string]struct {
		data []byte
		kind xlsx.Kind
		want string
	}{
		"empty":             {nil, xlsx.Broken, "damaged or cut off"},
		"cut off":           {whole[:len(whole)/2], xlsx.Broken, "damaged or cut off"},
		"damaged":           {damaged, xlsx.Broken, "damaged or cut off"},
		"password":          {container("EncryptedPackage"), xlsx.Protected, "password"},
		"xls":               {container("Workbook"), xlsx.Foreign, "xls"},
		"a Word document":   {container("WordDocument"), xlsx.Foreign, "old Office"},
		"xlsb":              {binary.pack(t), xlsx.Foreign, "xlsb"},
		"ods":               {parts{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<x/>"}.pack(t), xlsx.Foreign, "ods"},
		"zip":               {parts{"orders.csv": "a,b"}.pack(t), xlsx.Foreign, "archive"},
		"no workbook":       {without("_rels/.rels").pack(t), xlsx.Broken, "names no workbook"},
		"no sheet":          {without("xl/worksheets/sheet1.xml").pack(t), xlsx.Broken, "sheet1.xml"},
		"no strings":        {without("xl/sharedStrings.xml").pack(t), xlsx.Broken, "sharedStrings.xml"},
		"no text at all":    {workbook(one).pack(t), xlsx.Broken, "A1: the cell refers to"},
		"DOCTYPE":           {workbookOf(`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><sheetData/>`).pack(t), xlsx.Broken, "DOCTYPE"},
		"entity":            {workbook(`<row r="1"><c r="A1" t="str"><v>&e;</v></c></row>`).pack(t), xlsx.Broken, "unknown reference"},
		"depth":             {workbookOf(strings.Repeat("<a>", 100)).pack(t), xlsx.Broken, "deeper"},
		"open element":      {workbook(`<row r="1"><c r="A1">`).pack(t), xlsx.Broken, "closed by"},
		"no end":            {parts{"_rels/.rels": "<Relationships>", "[Content_Types].xml": ""}.pack(t), xlsx.Broken, "ends inside"},
		"rows out of order": {workbook(`<row r="2"/><row r="2"/>`).pack(t), xlsx.Broken, "follows row 2"},
		"cell elsewhere":    {workbook(`<row r="2"><c r="A3"/></row>`).pack(t), xlsx.Broken, "wrong place"},
		"cell twice":        {workbook(`<row r="2"><c r="A2"/><c r="A2"/></row>`).pack(t), xlsx.Broken, "wrong place"},
		"too many rows":     {workbook(`<row r="1048577"/>`).pack(t), xlsx.Broken, "more than 1048576 rows"},
		"too many columns":  {workbook(`<row r="1"><c r="XFE1"/></row>`).pack(t), xlsx.Broken, "wrong place"},
		"long text":         {workbook(`<row r="1"><c r="A1" t="str"><v>` + strings.Repeat("x", 2<<20) + `</v></c></row>`).pack(t), xlsx.Broken, "1 MiB"},
		"long row":          {workbook(`<row r="1">` + strings.Repeat(`<c t="s"><v>0</v></c>`, 40) + `</row>`).strings("<t>" + strings.Repeat("x", 32767) + "</t>").pack(t), xlsx.Broken, "1 MiB"},
		"bomb":              {workbook(strings.Repeat("<row/>", 5<<20)).pack(t), xlsx.Broken, "times larger"},
		"UTF-16":            {wide.pack(t), xlsx.Broken, "UTF-8"},
		"not UTF-8":         {workbook("<row r=\"1\"><c r=\"A1\" t=\"str\"><v>\xff</v></c></row>").pack(t), xlsx.Broken, "UTF-8"},
		"control character": {workbook("<row r=\"1\"><c r=\"A1\" t=\"str\"><v>\x01</v></c></row>").pack(t), xlsx.Broken, "control character"},
	} {
		cells, err := read(t, tt.data, 0)
		var wrong *xlsx.Error
		if !errors.As(err, &wrong) || wrong.Kind != tt.kind || !strings.Contains(err.Error(), tt.want) || wrong.Hint() == "" {
			t.Errorf("%s: got %v, %v; want %q", name, cells, err, tt.want)
		}
	}
}

// Of what all sheets share no more is kept than a spreadsheet writes.
func TestListsAreBounded(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	relations := workbook("")
	relations["xl/_rels/workbook.xml.rels"] = "<Relationships>" + many(20_000, `<Relationship Id="r%d" Target="x"/>`) + "</Relationships>"
	for name, tt := range map[string]struct {
		p    parts
		want string
	}{
		"relations": {relations, "too many references"},
		"formats":   {workbook("").with("styles", "styles.xml", `<styleSheet><numFmts>`+many(70_000, `<numFmt numFmtId="%d" formatCode="0"/>`)+`</numFmts></styleSheet>`), "too many styles"},
		"size":      {workbook("").with("styles", "styles.xml", `<styleSheet>`+strings.Repeat(" ", 33<<20)+`</styleSheet>`), "larger than 32 MiB"},
	} {
		_, err := open(t, tt.p.pack(t))
		var wrong *xlsx.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) || wrong.Hint() == "" {
			t.Errorf("%s: got %v; want %q", name, err, tt.want)
		}
	}
}

// What stands behind the rows is known before them.
func TestMergesAndFilters(t *testing.T) {
	data := workbookOf(`<sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="3"><c r="B3"><v>1</v></c></row></sheetData>
		<autoFilter ref="A1:B3"><filterColumn colId="0"/></autoFilter><mergeCells count="2"><mergeCell ref="A2:A4"/><mergeCell ref="A1:B1"/></mergeCells>`).pack(t)
	b, err := open(t, data)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := b.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for {
		row, err := rows.Next()
		if err != nil {
			break
		}
		for column := range 3 {
			if m, ok := rows.Merged(column); ok {
				got = append(got, fmt.Sprintf("%s in %v", xlsx.Address(column, row.Number), m))
			}
		}
	}
	want := []string{"A1 in A1:B1", "B1 in A1:B1", "A3 in A2:A4"}
	if diff := cmp.Diff(want, got); diff != "" || !rows.Filtered {
		t.Errorf("filtered %v (-want +got)\n%s", rows.Filtered, diff)
	}
}

// excelize writes shared strings; there are enough of them for a file, and they are read out of order.
func TestExcelize(t *testing.T) {
	f := excelize.NewFile()
	w, err := f.NewStreamWriter("Sheet1")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetRow("A1", []any{"text", 7, true, "  00123 "}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.NewSheet("More"); err != nil {
		t.Fatal(err)
	}
	const many = 300
	long := strings.Repeat("x", 30_000)
	for i := range many {
		for c, value := range []any{fmt.Sprintf("%d %s", i, long), fmt.Sprint(many - i)} {
			if err := f.SetCellValue("More", xlsx.Address(c, i+1), value); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t, b.Bytes(), 0)
	want := map[string]string{"A1": "text", "B1": "7", "C1": "TRUE*7", "D1": "  00123 "}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got, err = read(t, b.Bytes(), 1); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if a, c := got[xlsx.Address(0, i+1)], got[xlsx.Address(1, i+1)]; a != fmt.Sprintf("%d %s", i, long) || c != fmt.Sprint(many-i) {
			t.Fatalf("row %d: %.20q, %q", i+1, a, c)
		}
	}
}

// Many shared strings take memory that does not grow with them: they go to a file.
func TestStringsInFile(t *testing.T) {
	const many, limit = 300_000, 16 << 20
	var rows, texts strings.Builder
	for i := range many / 2 {
		fmt.Fprintf(&rows, `<row r="%d"><c r="A%d" t="s"><v>%d</v></c><c r="B%d" t="s"><v>%d</v></c></row>`, i+1, i+1, i, i+1, many-1-i)
	}
	for i := range many {
		fmt.Fprintf(&texts, `<si><t>1Z999AA10123456%08d</t></si>`, i)
	}
	p := workbook(rows.String()).with("sharedStrings", "sharedStrings.xml", `<sst `+transitional+`>`+texts.String()+`</sst>`)
	rows.Reset()
	texts.Reset()
	data := p.pack(t)
	clear(p)
	before := heap()
	b, err := open(t, data)
	if err != nil {
		t.Fatal(err)
	}
	in, err := b.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for i := range many / 2 {
		row, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if a, z := string(row.Cells[0].Text), string(row.Cells[1].Text); a != fmt.Sprintf("1Z999AA10123456%08d", i) || z != fmt.Sprintf("1Z999AA10123456%08d", many-1-i) {
			t.Fatalf("row %d: %s, %s", row.Number, a, z)
		}
	}
	if grown := int64(heap()) - int64(before); grown > limit {
		t.Errorf("%d bytes for %d strings", grown, many)
	}
}

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
	b, err := xlsx.Open(bytes.NewReader(data), int64(len(data)), func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "strings") })
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

// Elements of another name space than the root's are none of the workbook's, whatever they are called.
func TestForeignElements(t *testing.T) {
	const space = ` xmlns:f="http://example.com/f"`
	for name, rows := range map[string]string{
		"cells and values":   `<row r="1"><c r="A1" t="str"><v>a</v><f:v` + space + `>foreign</f:v></c><f:c` + space + ` r="B1" t="str"><f:v>b</f:v></f:c></row>`,
		"a row":              `<row r="1"><c r="A1" t="str"><v>a</v></c></row><f:row` + space + ` r="2"><f:c r="A2"><f:v>7</f:v></f:c></f:row>`,
		"by the default":     `<row r="1"><c r="A1" t="str"><v>a</v></c><c xmlns="http://example.com/f" r="B1" t="str"><v>b</v></c></row>`,
		"closed by itself":   `<row r="1"><f:c` + space + ` r="B1"/><c r="A1" t="str"><v>a</v></c></row>`,
		"no name space":      `<row r="1"><c r="A1" t="str"><v>a</v></c><c xmlns="" r="B1" t="str"><v>b</v></c></row>`,
		"undeclared":         `<row r="1"><c r="A1" t="str"><v>a</v></c><f:c r="B1" t="str"><v>b</v></f:c></row>`,
		"the same, prefixed": `<m:row xmlns:m="http://schemas.openxmlformats.org/spreadsheetml/2006/main" r="1"><m:c r="A1" t="str"><m:v>a</m:v></m:c></m:row>`,
	} {
		cells, err := read(t, workbook(rows).pack(t), 0)
		if err != nil || len(cells) != 1 || cells["A1"] != "a" {
			t.Errorf("%s: %v, %v", name, cells, err)
		}
	}
}
