//go:build linux

package main_test

import (
	"context"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/pgtest"
)

// block returns the text of a section between two marks.
func block(tb testing.TB, section, from, to string) string {
	tb.Helper()
	_, text, begins := strings.Cut(section, from)
	text, _, ends := strings.Cut(text, to)
	if !begins || !ends {
		tb.Fatalf("nothing between %q and %q in\n%s", from, to, section)
	}
	return text
}

// yamlOf reads a YAML text.
func yamlOf[T any](tb testing.TB, text string) (v T) {
	tb.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// put writes a file into the world's home.
func (w *world) put(name, text string) string {
	w.tb.Helper()
	path := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		w.tb.Fatal(err)
	}
	return path
}

// install puts the program at a path in the world's home.
func (w *world) install(name string) {
	w.tb.Helper()
	path, err := program()
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(filepath.Join(w.home, name)), 0o700); err == nil {
			err = os.Symlink(path, filepath.Join(w.home, name))
		}
	}
	if err != nil {
		w.tb.Fatal(err)
	}
}

// script runs a shell script in the world's home, with settings over the world's.
func (w *world) script(text string, env map[string]string) (int, string) {
	w.tb.Helper()
	cmd := exec.CommandContext(w.tb.Context(), "bash", "-e", "-o", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = w.home, slices.Clone(w.env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.tb.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// sharedStore returns a store for a job whose disk goes: on a server, where there is one.
func (w *world) sharedStore() string {
	w.tb.Helper()
	if url, ok := pgtest.URL(w.tb); ok {
		return url
	}
	w.tb.Log("NOT TESTED: PostgreSQL is missing, the job's store is a file")
	return filepath.Join(w.home, "shared.db")
}

// The job of docs/recipes.md for GitLab creates what the file names, once. Its first line builds
// the program, which is shown here only: the one of these tests takes its place.
func TestRecipeOfGitLab(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--processing", "0s")
	job := yamlOf[map[string]struct {
		Variables map[string]string
		Script    []string
		Artifacts struct{ Paths []string }
	}](t, block(t, recipe(t, "GitLab"), "```yaml\n", "```"))["upload"]
	build, isBuild := strings.CutPrefix(job.Script[0], "make -C waybill ")
	if !isBuild || len(job.Script) != 2 {
		t.Fatalf("script %q", job.Script)
	}
	if out, err := exec.CommandContext(t.Context(), "make", "-n", "-C", "../..", build).CombinedOutput(); err != nil || !strings.Contains(string(out), "-o waybill ./cmd/waybill") {
		t.Errorf("make %s: %v: %s", build, err, out)
	}
	w.install("waybill/waybill")
	w.put("orders.csv", "referId,rawTrackingNumber\nA,N1001\nB,N1002\nC,N1003\n")
	if job.Variables["WAYBILL_BASE_URL"] == "" || job.Variables["WAYBILL_STORE"] == "" {
		t.Errorf("variables %q", job.Variables)
	}
	job.Variables["WAYBILL_BASE_URL"], job.Variables["WAYBILL_STORE"] = w.url, w.sharedStore()
	for range 2 {
		if code, out := w.script(job.Script[1], job.Variables); code != 0 {
			t.Fatalf("%s: ended with %d: %s", job.Script[1], code, out)
		}
		if b, err := os.ReadFile(filepath.Join(w.home, job.Artifacts.Paths[0])); err != nil || !strings.Contains(string(b), `"accepted": 3`) {
			t.Errorf("%v: %v: %s", job.Artifacts.Paths, err, b)
		}
	}
	if s := w.stats(""); s.Created != 3 || s.Distinct != 3 {
		t.Errorf("the service has %+v; want 3 rows, each once", s)
	}
}

// The step of docs/recipes.md for GitHub runs the action with inputs that it has, and waits for
// the delivery of what the file names.
func TestRecipeOfGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--processing", "0s")
	w.install("action/waybill")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, ".github"), filepath.Join(w.home, "action", ".github")); err != nil {
		t.Fatal(err)
	}
	step := yamlOf[[]struct {
		Uses string
		With map[string]string
	}](t, block(t, recipe(t, "GitHub"), "```yaml\n", "```"))[0]
	definition, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	action := yamlOf[struct {
		Inputs map[string]struct {
			Required bool
			Default  string
		}
		Runs struct {
			Steps []struct {
				ID, Run string
				Env     map[string]string
			}
		}
	}](t, string(definition))
	step.With["file"], step.With["base-url"], step.With["store"] = w.put("orders.csv", "referId,rawTrackingNumber\nA,N1001\nB,N1002\n"), w.url, w.sharedStore()
	inputs := map[string]string{}
	for name, input := range action.Inputs {
		value, given := step.With[name]
		if !given && input.Required {
			t.Errorf("the step has no input %s", name)
		}
		inputs[name] = strings.NewReplacer("${{ secrets.WAYBILL_API_KEY }}", "k1", "${{ secrets.WAYBILL_STORE_PASSWORD }}", "").Replace(value)
		if !given {
			inputs[name] = input.Default
		}
	}
	for name := range step.With {
		if _, known := action.Inputs[name]; !known {
			t.Errorf("the action has no input %s", name)
		}
	}
	last := action.Runs.Steps[len(action.Runs.Steps)-1]
	env := map[string]string{
		"GITHUB_ACTION_PATH": filepath.Join(w.home, "action"), "GITHUB_OUTPUT": filepath.Join(w.home, "outputs"), "RUNNER_TEMP": w.home,
	}
	for name, value := range last.Env {
		env[name] = regexp.MustCompile(`\$\{\{ inputs\.([a-z-]+) \}\}`).ReplaceAllStringFunc(value, func(s string) string {
			return inputs[strings.TrimSuffix(strings.TrimPrefix(s, "${{ inputs."), " }}")]
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var days sync.WaitGroup
	days.Go(func() { // the carrier's days pass
		for ctx.Err() == nil {
			res, err := http.Post(w.url+"/_sandbox/advance", "application/json", strings.NewReader(`{"by":"240h"}`))
			if err != nil || res.Body.Close() != nil {
				return // the wait ends without a delivery
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	code, out := w.script(last.Run, env)
	cancel()
	days.Wait()
	outputs, err := os.ReadFile(env["GITHUB_OUTPUT"])
	if err != nil || code != 0 || !strings.HasPrefix(string(outputs), "exit-code=0\n") {
		t.Fatalf("%d: %v: %s\n%s", code, err, outputs, out)
	}
	trackings, err := os.ReadFile(block(t, string(outputs), "trackings=", "\n"))
	if err != nil {
		t.Fatal(err)
	}
	all := yamlOf[[]struct { // JSON is YAML
		ReferID     string `yaml:"referId"`
		StatusTrack string `yaml:"statusTrack"`
	}](t, string(trackings))
	if len(all) != 2 || all[0].ReferID != "A" || all[1].ReferID != "B" || all[0].StatusTrack != "delivered" || all[1].StatusTrack != "delivered" {
		t.Errorf("%+v; want A and B, delivered", all)
	}
}

// The line of docs/recipes.md for cron runs the script of the nightly upload, and not beside
// another run.
func TestRecipeOfCron(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--processing", "0s")
	w.install("bin/waybill")
	w.put("nightly.sh", block(t, recipe(t, "A nightly upload, with retries"), "<<'END'\n", "END\n"))
	for _, words := range [][]string{{"config", "set", "base_url", w.url}, {"config", "set", "api_key_file", w.put("key", "k1")}} {
		if code, _, stderr := w.run(words...); code != 0 {
			t.Fatalf("%v: %d: %s", words, code, stderr)
		}
	}
	fields := strings.Fields(block(t, recipe(t, "Cron"), "\n    ", "\n"))
	line := strings.NewReplacer("/srv/export/orders.csv", w.put("orders.csv", "referId,rawTrackingNumber\nA,N1001\nB,N1002\n"),
		"/tmp/", w.home+"/").Replace(strings.Join(fields[5:], " "))
	w.env = []string{"HOME=" + w.home, "PATH=" + w.home + "/bin:/usr/bin:/bin"} // cron gives no more
	locked := "exec 9>" + w.home + "/waybill-nightly; flock 9; " + line
	if code, out := w.script(locked, nil); code != 1 {
		t.Errorf("beside another run: ended with %d: %s", code, out)
	}
	if s := w.stats(""); s.Created != 0 {
		t.Errorf("%d rows were created beside another run", s.Created)
	}
	for range 2 {
		if code, out := w.script(line, nil); code != 0 {
			t.Fatalf("%s: ended with %d: %s", line, code, out)
		}
	}
	if s := w.stats(""); s.Created != 2 || s.Distinct != 2 {
		t.Errorf("the service has %+v; want 2 rows, each once", s)
	}
}
