package settings

import (
	"encoding/json"
	"slices"
)

// SkillKind is the kind of a memory record that holds a skill.
const SkillKind = "skill"

// SkillOf is the skill that a record of SkillKind holds: the text of the record, and in
// its metadata name, description and tools. Without a name there it is called as the
// record's key. It is an error as of CheckSkill, with the paths of the record.
func SkillOf(text, key string, metadata json.RawMessage) (Skill, error) {
	var s Skill
	if len(metadata) > 0 {
		// Metadata of another form names nothing.
		_ = json.Unmarshal(metadata, &s)
	}
	if s.Name == "" {
		s.Name = key
	}
	s.Text, s.Active = text, false
	return s, CheckSkill("record", s)
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
