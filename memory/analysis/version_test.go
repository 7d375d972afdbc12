package analysis_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

// texts are a bit of everything that the analysis treats in its own way.
var texts = []string{
	sample,
	"He went home; the children's oxen were running, and the wolves' leaves had fallen. To be or not to be",
	"func getUserName(ctx) in src/app.py, HTTPServer2 v1.2.3 max_inflight=256 user@example.com https://a.b/c?d=e #tag",
	"On 8 May 2023, Sept. 8, 2023-05-08T10:30, March 3rd and May we meet at 45,000 or 3.14? 1e9 0x1F",
	"我喜欢比特币和区块链技术。東京タワーへ行きました コーヒー ｶﾌｪ 안녕하세요 제주도에서",
	"Straße ﬁnding ǅ İ ﷺ l’été d'Éric naïve 🎉 á́ ½ ①",
	"Les chevaux étaient dans l'écurie, nous travaillions aux travaux nationaux",
	"A gyerekek a házakban voltak, és nagyobb kertjeinkben játszottak",
	"Guttene og jentene spiste brødskivene på kjøkkenet",
	"Мы долго говорили о красивых домах на берегу реки",
	"Los niños corrían por las calles cantando canciones",
	"Flickorna och pojkarna sprang genom skogarna",
	"We saw The Who and AT&T's C++ and .NET, IT of the U.S., vitamin D, Wi-Fi, Mueller or Müller, pass\u200bword",
	"ฉันชอบกินข้าวผัด ព្រះរាជាណាចក្រកម្ពុជា Κόσμε Łódź",
}

// The terms of a version never change: whoever changes them raises the version,
// then puts the new names and digests here.
func TestTermsOfVersion(t *testing.T) {
	want := map[string]string{
		"auto/7": "8cf912ec59863762", "danish/7": "795cc012410662f1", "dutch/7": "4ec1f855c48fed87", "english/7": "3710f63b53b8bd5a",
		"finnish/7": "79a8898a57935acd", "french/7": "41fd399cfd5392c7", "german/7": "d30437e37067ccaf", "hungarian/7": "4ae806f3c241a0b8",
		"italian/7": "86071d04fb4e0f62", "norwegian/7": "44b83fd946651ae2", "portuguese/7": "828a8e63dd852b58", "romanian/7": "644f457e171a173a",
		"russian/7": "3710f63b53b8bd5a", "spanish/7": "40ca8c47fed95390", "swedish/7": "cf5ee92d672257cb", "turkish/7": "59186fc4b800c1e3",
	}
	got := map[string]string{}
	for _, l := range analysis.Languages() {
		a := analysis.New(&analysis.Options{Language: l})
		var terms strings.Builder
		for _, text := range texts {
			for term := range a.Indexed(text, func(aside string) { terms.WriteString("+" + aside + "\n") }) {
				terms.WriteString(term + "\n")
			}
		}
		sum := sha256.Sum256([]byte(terms.String()))
		got[a.Name()] = hex.EncodeToString(sum[:8])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
}
