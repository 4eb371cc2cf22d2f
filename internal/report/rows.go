package report

// sizeOfTable is more than what stands between the head of a page and its rows takes.
const sizeOfTable = 16 << 10

func (p *Page) writeColumns(w *writer) {
	w.html("<thead><tr>")
	names := []string{"Reference", "Number", "Carrier", "Status", "Latest event", "Last checkpoint", "Updated"}
	for i, name := range names {
		w.html("<th scope=\"col\"")
		if i >= len(names)-2 {
			w.html(" data-kind=\"time\"")
		}
		w.html(">").text(name).html("</th>")
	}
	w.html("</tr></thead>\n")
}

// writeRow writes a row. Ends of rows and cells are left to HTML: ten thousand rows have
// room for more text so.
func (p *Page) writeRow(w *writer, r *Row) {
	w.html("<tr class=\"").html(classes[r.Class].letter)
	if r.Stuck != "" {
		w.html(" s")
	}
	w.html("\"><th scope=\"row\">").text(r.Reference).html("<td>").text(r.Number).html("<td>").text(r.Carrier).html("<td class=\"st\">").text(r.Status)
	if r.Stuck != "" {
		w.html(" <i>stuck ").text(r.Stuck).html("</i>")
	}
	w.html("<td>").text(r.Event).html("<td>").text(r.Checkpoint).html("<td>").text(r.Updated).html("\n")
}

// writeRows writes rows as long as they fit into so many bytes, and returns how many.
func (p *Page) writeRows(w *writer, room int) int {
	for i := range p.Rows {
		before := w.Len()
		if i < MaxRows {
			p.writeRow(w, &p.Rows[i])
		}
		if i == MaxRows || w.Len() > room {
			w.Truncate(before)
			return i
		}
	}
	return len(p.Rows)
}

func (p *Page) writeTableHead(w *writer, shown int) {
	total := p.Counts.Total()
	if total == 0 {
		return
	}
	w.html("<section aria-labelledby=\"table\">\n<h2 id=\"table\">Trackings</h2>\n")
	if int64(shown) < total {
		w.html("<p class=\"cut\"><strong>This table has ").text(p.Number(int64(shown))).html(" of ").text(p.Number(total)).
			html(" trackings</strong>: problems and stuck ones first, then the latest of the others. The numbers above count all. To write all to a file, run:<br><code>").
			text(p.Command).html("</code></p>\n")
	}
	w.html("<p class=\"note\">Problems first, then stuck ones. Times are those of UTC").text(p.Zone).html(", unless they have another offset.</p>\n")
	w.html(`<form id="filter" role="search" hidden>
<div><label for="search">Find in all columns</label><input id="search" type="search" autocomplete="off"></div>
<div><label for="group">Show</label><select id="group">
<option value="">All</option>
<option value="p">Problems</option>
<option value="s">Stuck</option>
<option value="u">Under way</option>
<option value="n">Not reported</option>
<option value="d">Delivered</option>
</select></div>
<output id="shown" for="search group"></output>
</form>
<div class="scroll list" tabindex="0" role="region" aria-label="Trackings"><table id="trackings" data-zone="`).text(p.Zone).html("\">\n")
	p.writeColumns(w)
	w.html("<tbody>\n")
}

func (p *Page) tail() *writer {
	w := &writer{}
	if p.Counts.Total() > 0 {
		w.html("</tbody>\n</table></div>\n</section>\n")
	}
	w.html("</main>\n<footer class=\"note\"><p>The numbers are those of <code>waybill stats</code> with the same filters.</p></footer>\n<script>").html(markup(script)).html("</script>\n</body>\n</html>\n")
	return w
}
