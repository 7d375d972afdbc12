package settings

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// SkillKind is the kind of a memory record that holds a skill.
const SkillKind = "skill"

// IsToolName reports whether a tool can have a name: 1 to MaxToolNameBytes letters, digits
// and the characters _ : . - /.
func IsToolName(name string) bool {
	if name == "" || len(name) > MaxToolNameBytes {
		return false
	}
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("_:.-/", c) < 0 {
			return false
		}
	}
	return true
}

// SkillOf is the skill that a record of SkillKind holds: the text of the record, and in
// its metadata name, description and tools. Without a name there, the record's key is the
// name. Line breaks in name and description are removed and long ones are cut. A record
// without a name, or with too long a name, is no skill.
func SkillOf(body, key string, metadata json.RawMessage) (Skill, bool) {
	var m struct{ Name, Description, Tools json.RawMessage }
	_ = json.Unmarshal(metadata, &m) // metadata of another form say nothing
	s := Skill{
		Name:        text.OneLine(cmp.Or(stringOf(m.Name), key)),
		Description: text.Cut(text.OneLine(stringOf(m.Description)), MaxDescriptionBytes-len(text.Ellipsis), text.Ellipsis),
		Text:        text.Head(body, MaxSkillBytes),
	}
	var tools []json.RawMessage
	_ = json.Unmarshal(m.Tools, &tools)
	for _, raw := range tools {
		if name := stringOf(raw); name != "" && len(name) <= MaxToolNameBytes && len(s.Tools) < MaxSkillTools {
			s.Tools = append(s.Tools, name)
		}
	}
	return s, CheckSkill("record", s) == nil
}

// stringOf is the text that a JSON value is; empty where it is none.
func stringOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// FirstActive are the names of the skills that are active from the start.
func FirstActive(skills []Skill) []string {
	var names []string
	for i := range skills {
		if skills[i].Active && !slices.Contains(names, skills[i].Name) {
			names = append(names, skills[i].Name)
		}
	}
	return names
}
