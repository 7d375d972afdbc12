package embed

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// request is the body of a request.
type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
	Encoding   string   `json:"encoding_format"`
}

// answer is what of an answer counts.
type answer struct {
	Data []struct {
		Index     *int    `json:"index"`
		Embedding numbers `json:"embedding"`
	} `json:"data"`
}

// numbers is a vector as a list or as base64 of singles, lowest byte first.
type numbers []float32

// UnmarshalJSON reads both forms.
func (n *numbers) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		return json.Unmarshal(b, (*[]float32)(n))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	if len(content)%4 != 0 {
		return fmt.Errorf("%d bytes are no singles", len(content))
	}
	*n = make([]float32, len(content)/4)
	for i := range *n {
		(*n)[i] = math.Float32frombits(binary.LittleEndian.Uint32(content[4*i:]))
	}
	return nil
}

// readAnswer returns the vectors of an answer in the order of the texts.
func readAnswer(content []byte, texts, dimensions int) ([][]float32, error) {
	var a answer
	if err := json.Unmarshal(content, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if err := checkCount(len(a.Data), texts); err != nil {
		return nil, err
	}
	vectors := make([][]float32, texts)
	for i, item := range a.Data {
		place := i
		if item.Index != nil {
			place = *item.Index
		}
		if place < 0 || place >= texts || vectors[place] != nil {
			return nil, fmt.Errorf("%w: index %d twice or out of range", ErrAnswer, place)
		}
		if err := checkVector(item.Embedding, dimensions); err != nil {
			return nil, err
		}
		vectors[place] = item.Embedding
	}
	return vectors, checkDimensions(vectors)
}

func checkVector(v []float32, dimensions int) error {
	switch {
	case len(v) == 0 || len(v) > MaxDimension:
		return fmt.Errorf("%w: vector of %d numbers", ErrAnswer, len(v))
	case dimensions > 0 && len(v) != dimensions:
		return fmt.Errorf("%w: vector of %d numbers, %d were asked for", ErrAnswer, len(v), dimensions)
	}
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("%w: vector with a number that is not finite", ErrAnswer)
		}
	}
	return nil
}

// checkDimensions refuses vectors of different lengths.
func checkDimensions(vectors [][]float32) error {
	for _, v := range vectors {
		if len(v) != len(vectors[0]) {
			return fmt.Errorf("%w: vectors of %d and %d numbers", ErrAnswer, len(vectors[0]), len(v))
		}
	}
	return nil
}
