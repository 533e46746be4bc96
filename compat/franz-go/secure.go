// The options of a client on a secured listener, from a JSON file of the flag -secure; none without it.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security names PEM files and a log-in. What is empty is not used.
type security struct {
	CA          string `json:"ca"`
	Certificate string `json:"certificate"` // with its key
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
}

func secureOptions(path string) ([]kgo.Opt, error) {
	var wanted security
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &wanted); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var options []kgo.Opt
	if wanted.CA != "" {
		config, err := tlsConfig(wanted)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if wanted.Mechanism != "" {
		mechanism, err := wanted.mechanism()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

func tlsConfig(wanted security) (*tls.Config, error) {
	text, err := os.ReadFile(wanted.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", wanted.CA)
	}
	if wanted.Certificate != "" {
		own, err := tls.LoadX509KeyPair(wanted.Certificate, wanted.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func (s security) mechanism() (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Auth{Token: s.Token}.AsMechanism(), nil
	}
	return nil, fmt.Errorf("there is no mechanism %q", s.Mechanism)
}
