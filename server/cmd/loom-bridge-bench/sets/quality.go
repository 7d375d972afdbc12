package sets

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Quality reads the made-up conversations of memory/testdata/quality in the folder of the
// project's source. Questions that nothing answers are left out.
func Quality(source string) (*Set, error) {
	folder := filepath.Join(source, "memory", "testdata", "quality")
	type conversation struct {
		Scope, Session string
		Time           time.Time
		Turns          [][]string // author, text, and the turn that it supersedes, if any
	}
	sessions, err := jsonLines[conversation](filepath.Join(folder, "sessions.jsonl"))
	if err != nil {
		return nil, err
	}
	set, talks := &Set{Name: "made-up talks"}, make(map[string]*Talk)
	for _, c := range sessions {
		talk := talks[c.Scope]
		if talk == nil {
			talk = &Talk{ID: c.Scope}
			talks[c.Scope] = talk
			set.Talks = append(set.Talks, talk)
		}
		for i, t := range c.Turns {
			turn := Turn{ID: fmt.Sprintf("%s-%d", c.Session, i+1), Session: c.Session, Author: t[0], Text: t[1], Time: c.Time}
			if len(t) > 2 {
				turn.Supersedes = t[2]
			}
			talk.Turns = append(talk.Turns, turn)
		}
	}
	type labelled struct {
		Scope, Class, Question string
		Evidence, Stale        []string
	}
	questions, err := jsonLines[labelled](filepath.Join(folder, "questions.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, q := range questions {
		if talk := talks[q.Scope]; talk != nil && len(q.Evidence) > 0 {
			talk.Questions = append(talk.Questions, Question{
				Text: q.Question, Class: q.Class, Evidence: q.Evidence, Stale: q.Stale, After: len(talk.Turns),
			})
		}
	}
	return set, nil
}

func jsonLines[T any](path string) (all []T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line T
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		all = append(all, line)
	}
	return all, nil
}
