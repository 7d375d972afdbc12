package sets

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LocomoClasses are the classes of LoCoMo's questions, in the order of their numbers from 1.
var LocomoClasses = []string{"multi-hop", "temporal", "open", "single-hop", "adversarial"}

// locomoSample is a long conversation of two people with questions about it.
type locomoSample struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Text     string   `json:"question"`
		Evidence []string `json:"evidence"`
		Category int      `json:"category"`
	} `json:"qa"`
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// Locomo reads the conversations of LoCoMo that lie in the folder of the evaluation data:
// the ones that the weights of the ranking were set on. Questions without evidence are left
// out.
func Locomo(data string) (*Set, error) {
	raw, err := os.ReadFile(filepath.Join(data, "locomo", "locomo_dev.json"))
	if err != nil {
		return nil, err
	}
	var samples []*locomoSample
	if err := json.Unmarshal(raw, &samples); err != nil {
		return nil, err
	}
	set := &Set{Name: "LoCoMo dev"}
	for _, s := range samples {
		talk := &Talk{ID: s.ID}
		if err := s.read(talk); err != nil {
			return nil, err
		}
		s.ask(talk)
		set.Talks = append(set.Talks, talk)
	}
	return set, nil
}

// LocomoSessions is what Locomo reads with each session as one record, in which every line is
// what one of them says: long records of which a question asks for a line or two.
func LocomoSessions(data string) (*Set, error) {
	set, err := Locomo(data)
	if err != nil {
		return nil, err
	}
	set.Name = "LoCoMo dev, a session a record"
	for _, talk := range set.Talks {
		var sessions []Turn
		for _, t := range talk.Turns {
			if n := len(sessions); n == 0 || sessions[n-1].ID != t.Session {
				sessions = append(sessions, Turn{ID: t.Session, Time: t.Time})
			}
			session := &sessions[len(sessions)-1]
			line := strings.TrimSpace(t.Line())
			session.Text += line + "\n"
			session.Tells = append(session.Tells, Told{t.ID, line})
		}
		talk.Turns = sessions
		for i := range talk.Questions {
			talk.Questions[i].After = len(sessions)
		}
	}
	return set, nil
}

// read adds the turns of all sessions.
func (s *locomoSample) read(talk *Talk) error {
	for n := 1; ; n++ {
		name := fmt.Sprintf("session_%d", n)
		raw, ok := s.Conversation[name]
		if !ok {
			return nil
		}
		var turns []locomoTurn
		var date string
		if err := json.Unmarshal(raw, &turns); err != nil {
			return err
		}
		if err := json.Unmarshal(s.Conversation[name+"_date_time"], &date); err != nil {
			return err
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			return err
		}
		for _, t := range turns {
			text := t.Text
			if t.Caption != "" {
				text += "\n" + t.Caption
			}
			talk.Turns = append(talk.Turns, Turn{ID: t.ID, Session: name, Author: t.Speaker, Text: text, Time: at})
		}
	}
}

var locomoEvidence = regexp.MustCompile(`D:?(\d+):(\d+)`)

// ask adds the questions that have evidence, the slips in its ids repaired.
func (s *locomoSample) ask(talk *Talk) {
	known := make(map[string]bool)
	for _, t := range talk.Turns {
		known[t.ID] = true
	}
	for _, q := range s.Questions {
		asked := Question{Text: q.Text, Class: LocomoClasses[q.Category-1], After: len(talk.Turns)}
		for _, text := range q.Evidence {
			for _, match := range locomoEvidence.FindAllStringSubmatch(text, -1) {
				session, _ := strconv.Atoi(match[1])
				turn, _ := strconv.Atoi(match[2])
				if id := fmt.Sprintf("D%d:%d", session, turn); known[id] && !slices.Contains(asked.Evidence, id) {
					asked.Evidence = append(asked.Evidence, id)
				}
			}
		}
		if len(asked.Evidence) > 0 {
			talk.Questions = append(talk.Questions, asked)
		}
	}
}
