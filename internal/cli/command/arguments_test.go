package command

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

func TestArguments(t *testing.T) {
	tests := []struct {
		use  string
		want []string
	}{
		{"list", nil},
		{"create [FILE|-]...", []string{"FILE"}},
		{"check FILE|-...", []string{"FILE"}},
		{"show REF...|--from FILE|--run ID", []string{"REF"}},
		{"replay ID...|--since TIME|--dead", []string{"ID"}},
		{"verify [ID...|--body FILE]", []string{"ID"}},
		{"prune --older-than AGE", nil},
		{"help [COMMAND|TOPIC]", []string{"COMMAND", "TOPIC"}},
	}
	for _, tt := range tests {
		if got := Arguments(&cobra.Command{Use: tt.use}); !slices.Equal(got, tt.want) {
			t.Errorf("Arguments(%s) = %q; want %q", tt.use, got, tt.want)
		}
	}
}
