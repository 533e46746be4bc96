// Opens clusters of kfake on request. Each line of the input is {"open": options} or {"close": "HOST:PORT"}; the answer
// is a line: the address, or "closed". It ends with its input.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

type options struct {
	Configs  map[string]string `json:"configs"`
	Auto     bool              `json:"auto"`
	TLS      string            `json:"tls"` // a file with key and certificate
	User     string            `json:"user"`
	Password string            `json:"password"`
	ACLs     bool              `json:"acls"`
}

func open(wanted options) (*kfake.Cluster, error) {
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.DefaultNumPartitions(1)}
	if len(wanted.Configs) > 0 {
		opts = append(opts, kfake.BrokerConfigs(wanted.Configs))
	}
	if wanted.Auto {
		opts = append(opts, kfake.AllowAutoTopicCreation())
	}
	if wanted.TLS != "" {
		pair, err := tls.LoadX509KeyPair(wanted.TLS, wanted.TLS)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	}
	if wanted.User != "" {
		opts = append(opts, kfake.EnableSASL(), kfake.Superuser("PLAIN", wanted.User, wanted.Password))
	}
	if wanted.ACLs {
		opts = append(opts, kfake.EnableACLs())
	}
	return kfake.NewCluster(opts...)
}

func main() {
	clusters := map[string]*kfake.Cluster{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var line struct {
			Open  *options `json:"open"`
			Close string   `json:"close"`
		}
		err := json.Unmarshal(lines.Bytes(), &line)
		if err == nil && line.Open == nil {
			clusters[line.Close].Close()
			delete(clusters, line.Close)
			fmt.Println("closed")
			continue
		}
		var cluster *kfake.Cluster
		if err == nil {
			cluster, err = open(*line.Open)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		address := cluster.ListenAddrs()[0]
		clusters[address] = cluster
		fmt.Println(address)
	}
}
