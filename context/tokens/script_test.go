package tokens_test

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What is guessed goes by the scripts of the text.
// P31
func TestEstimate(t *testing.T) {
	c := MustCounter(t, nil)
	for _, tt := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"abcd", 1},
		{"abcde", 2},
		{"天地玄黄", 4},             // 3.16
		{"ひらがなカー", 5},           // 4.44
		{"안녕하세요", 4},            // 4.00
		{"안녕하세요!", 5},           // 4.25
		{"你好, world", 4},        // 1.58 + 1.75
		{"👍🎉", 4},               // 3.60
		{"\xff\xfe\xfd\xfc", 1}, // four characters of no script
	} {
		if got := MustCount(t, c, "of-nobody", tt.text); got.Tokens != tt.want || got.Counter != "estimate" || got.Exact {
			t.Errorf("%q: got %+v, want %d", tt.text, got, tt.want)
		}
	}
}

// The guess is near what a large vocabulary needs,
// where a quarter of a token for each character is far too little.
func TestEstimateOfScripts(t *testing.T) {
	c := MustCounter(t, nil)
	for name, text := range map[string]string{
		"chinese":  "人工智能正在改变我们的生活方式。今天的天气很好，我们去公园散步吧。请问附近有没有好吃的餐厅？",
		"japanese": "今日はいい天気ですね。公園まで散歩に行きましょう。このプログラムはエラーが発生しました。ファイルを開けません。",
		"korean":   "오늘은 날씨가 정말 좋네요. 우리 같이 공원에 산책하러 갈까요? 이 프로그램은 오류가 발생했습니다.",
		"emoji":    "😂❤🤣👍😭🙏😘🥰😍😊🎉😁💕🥺😅🔥🤦🤷🙄😆🤗😉🎂🤔👏🙂😳🥳😎👌💜😔💪✨💖👀😋😏😢👉💗😩💯🌹💞🎈💙😃😡💐",
	} {
		real := float64(MustCount(t, c, "gpt-4o", text).Tokens)
		got := float64(MustCount(t, c, "of-nobody", text).Tokens)
		t.Logf("%s: %d characters, guessed %.0f, o200k %.0f", name, utf8.RuneCountInString(text), got, real)
		if got < 0.75*real || got > 1.25*real {
			t.Errorf("%s: guessed %.0f, want %.0f, within 25 %%", name, got, real)
		}
	}
}

func TestEstimateEnds(t *testing.T) {
	c := MustCounter(t, nil)
	text := strings.Repeat("天地玄黄 abcd 👍 ", 100)
	first, last, err := c.Ends("of-nobody", text, 10, 5)
	if err != nil || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		t.Fatalf("%q … %q, %v", first, last, err)
	}
	if got := MustCount(t, c, "of-nobody", first).Tokens; got < 9 || got > 10 {
		t.Errorf("first has %d tokens", got)
	}
	if got := MustCount(t, c, "of-nobody", last).Tokens; got < 4 || got > 5 {
		t.Errorf("last has %d tokens", got)
	}
}
