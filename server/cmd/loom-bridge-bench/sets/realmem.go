package sets

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// realmemUser is what a user said to an assistant, over months.
type realmemUser struct {
	ID       string           `json:"id"`
	Sessions []realmemSession `json:"sessions"`
}

type realmemSession struct {
	Session string `json:"session"`
	Time    string `json:"time"`
	Turns   []struct {
		Speaker  string   `json:"speaker"`
		Text     string   `json:"text"`
		IsQuery  bool     `json:"is_query"`
		Category string   `json:"category"`
		Evidence []string `json:"evidence_sessions"`
	} `json:"turns"`
}

// Realmem reads the users' talks of RealMem that lie in the folder of the evaluation data.
// A question is a turn of the talk; only the sessions before its own exist when it is
// asked. Its evidence are sessions. Sessions that do not exist yet or have no text are left
// out, and so are questions without other evidence.
func Realmem(data string) (*Set, error) {
	file, err := os.Open(filepath.Join(data, "realmem", "realmem_dev.jsonl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	set := &Set{Name: "RealMem dev", BySession: true}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20) // a user is some MiB
	for lines.Scan() {
		var user realmemUser
		if err := json.Unmarshal(lines.Bytes(), &user); err != nil {
			return nil, err
		}
		talk := &Talk{ID: user.ID}
		said := make(map[string]bool)
		for _, session := range user.Sessions {
			if err := session.read(talk, said); err != nil {
				return nil, err
			}
		}
		set.Talks = append(set.Talks, talk)
	}
	return set, lines.Err()
}

// read adds the questions of a session, then its turns. said are the earlier sessions.
func (s *realmemSession) read(talk *Talk, said map[string]bool) error {
	day, _, _ := strings.Cut(s.Time, " ")
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return err
	}
	before := len(talk.Turns)
	for i, turn := range s.Turns {
		if turn.IsQuery && i+1 < len(s.Turns) {
			asked := Question{Text: turn.Text, Class: turn.Category, After: before}
			for _, id := range s.Turns[i+1].Evidence {
				if said[id] {
					asked.Evidence = append(asked.Evidence, id)
				}
			}
			if len(asked.Evidence) > 0 {
				talk.Questions = append(talk.Questions, asked)
			}
		}
		if strings.TrimSpace(turn.Text) != "" {
			talk.Turns = append(talk.Turns, Turn{
				ID: fmt.Sprintf("%s:%d", s.Session, i), Session: s.Session, Author: turn.Speaker, Text: turn.Text, Time: at,
			})
		}
	}
	if len(talk.Turns) > before {
		said[s.Session] = true
	}
	return nil
}
