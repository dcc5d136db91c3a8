package printable

import "testing"

// C-30.13: nothing that a terminal would act on is printed.
func TestLine(t *testing.T) {
	tests := []struct{ text, want string }{
		{"Ärger, 日本語, 👩‍💻", "Ärger, 日本語, 👩‍💻"},
		{"\x1b[2J\x1b]0;title\a", "�[2J�]0;title�"},
		{"\u009b31m", "�31m"},
		{"a\nb\r\nc\td", "a b  c d"},
		{"\u202egpj.exe", "�gpj.exe"},
		{"\xff\x00\x7f", "���"},
	}
	for _, tt := range tests {
		if got := Line(tt.text); got != tt.want {
			t.Errorf("Line(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if got, want := Lines("a\r\n\x1bb\n"), "a\n�b\n"; got != want {
		t.Errorf("Lines = %q, want %q", got, want)
	}
}
