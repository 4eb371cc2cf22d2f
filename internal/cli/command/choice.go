package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/config"
)

// Chooser is the value of a flag that takes some words only. Help and completion
// show them.
type Chooser interface {
	Choices() []string
}

// Choice adds a flag that takes one of some words.
func Choice(f *pflag.FlagSet, value *string, name, preset, help string, words ...string) {
	*value = preset
	f.Var(&choice{value: value, words: words}, name, help+": "+Or(words))
}

// Choices adds a flag that takes any of some words: separated by commas, or by
// the flag given again.
func Choices(f *pflag.FlagSet, values *[]string, name, help string, words ...string) {
	f.Var(&choices{values: values, words: words}, name, help+": "+Or(words))
}

func choose(word string, words []string) (string, error) {
	if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, word) }); i >= 0 {
		return words[i], nil
	}
	text := "must be " + Or(words) + ", not " + Quoted(word)
	if near := config.Nearest(word, words); near != "" {
		text += "; did you mean " + near + "?"
	}
	return "", errors.New(text)
}

// Or lists words, such as "a, b or c".
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

type choice struct {
	value *string
	words []string
}

func (c *choice) String() string { return *c.value }

func (c *choice) Type() string { return "word" }

func (c *choice) Choices() []string { return c.words }

// Set takes one of the words, in any case.
func (c *choice) Set(word string) (err error) {
	*c.value, err = choose(word, c.words)
	return err
}

type choices struct {
	values *[]string
	words  []string
}

func (c *choices) String() string { return strings.Join(*c.values, ",") }

func (c *choices) Type() string { return "words" }

func (c *choices) Choices() []string { return c.words }

// GetSlice is as [pflag.SliceValue] has it, like Append and Replace.
func (c *choices) GetSlice() []string { return *c.values }

func (c *choices) Append(word string) error { return c.Set(word) }

func (c *choices) Replace(words []string) error {
	*c.values = nil
	return c.Set(strings.Join(words, ","))
}

// Set adds words, separated by commas.
func (c *choices) Set(list string) error {
	for word := range strings.SplitSeq(list, ",") {
		chosen, err := choose(word, c.words)
		if err != nil {
			return err
		}
		*c.values = append(*c.values, chosen)
	}
	return nil
}
