package instruct_test

import (
	"flag" //nolint:depguard // -update belongs to the test binary, no setting of the product
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

var update = flag.Bool("update", false, "write the table into the document")

// strangers are who instructs nobody, whatever it writes.
const strangers = instruct.Agent | instruct.Model | instruct.Tool | instruct.Import

// Each row is whole, and gives no stranger a role that instructs, alone or with others.
func TestTable(t *testing.T) {
	seen := make(map[instruct.Source]bool)
	for _, row := range instruct.Table() {
		if seen[row.Source] {
			t.Errorf("%s stands there twice", row.Source)
		}
		seen[row.Source] = true
		if row.About == "" || row.Frame == "" || row.Writers == 0 || row.Removers == 0 {
			t.Errorf("%s says too little: %+v", row.Source, row)
		}
		if row.Instructors&^row.Writers != 0 || row.Instructors&strangers != 0 {
			t.Errorf("%s lets %s instruct", row.Source, row.Instructors)
		}
		if row.Otherwise == session.System || row.Otherwise == session.Developer {
			t.Errorf("%s has the role %v for whoever writes it", row.Source, row.Otherwise)
		}
		if (row.Instructors == 0) != (row.Role == 0) {
			t.Errorf("%s has instructors %q and the role %v", row.Source, row.Instructors, row.Role)
		}
		for who := instruct.Who(0); who <= instruct.Everybody; who++ {
			role := row.RoleOf(who)
			if who == 0 || who&strangers != 0 {
				if role == session.System || role == session.Developer || row.Instructs(who) {
					t.Fatalf("%s gives %q the role %v", row.Source, who, role)
				}
			}
		}
		if row.Role == session.System && row.Removers&(instruct.Model|instruct.Tool|instruct.Import) != 0 {
			t.Errorf("%s instructs, and %s remove it", row.Source, row.Removers)
		}
	}
}

// Every section of a prompt has its row, and what has none instructs nobody.
func TestEverySectionHasItsRow(t *testing.T) {
	parts := map[string]instruct.Source{settings.History: instruct.Messages, settings.Events: instruct.Tasks, settings.Messages: instruct.Direct}
	for _, section := range settings.Sections() {
		source, ok := parts[section]
		if !ok {
			source = instruct.Source(section)
		}
		if row := instruct.Of(source); row.Source != source {
			t.Errorf("the section %s has no row", section)
		}
	}
	row := instruct.Of("something new")
	for who := instruct.Who(0); who <= instruct.Everybody; who++ {
		if row.Instructs(who) || row.RoleOf(who) != session.User {
			t.Fatalf("a text without a row: %q has the role %v", who, row.RoleOf(who))
		}
	}
}

const begin, end = "<!-- table of context/instruct: begin -->\n", "<!-- table of context/instruct: end -->\n"

// The document about threats has the table.
func TestDocument(t *testing.T) {
	const path = "../../bridge/sandbox/THREATS.md"
	var b strings.Builder
	b.WriteString("| text | who writes it | role, for whom | role of others | frame | who removes it |\n|---|---|---|---|---|---|\n")
	for _, row := range instruct.Table() {
		role, otherwise := "none", "not shown"
		if row.Instructors != 0 {
			role = row.Role.String() + ": " + row.Instructors.String()
		}
		if row.Writers&^row.Instructors == 0 {
			otherwise = "–"
		} else if row.Otherwise != 0 {
			otherwise = row.Otherwise.String()
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s | %s | %s | %s |\n", row.Source, row.About, row.Writers, role, otherwise, row.Frame, row.Removers)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	written, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	if written == b.String() {
		return
	}
	if !*update {
		t.Fatalf("%s has another table; -update writes it", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}
