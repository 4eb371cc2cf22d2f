package carriers

// Forms returns all forms; S10 has no carrier, as the number names it.
func Forms() []Form {
	all := make([]Form, len(forms()))
	for i, f := range forms() {
		all[i] = f.Form
	}
	return all
}

// FormTable is the table of forms, and Rules are the rules that it may name.
var FormTable, Rules = formTable, rules
