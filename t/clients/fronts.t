#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Real clients work behind each front of t/hub/urls.t: other names and ports,
# TLS, HTTP/2, prefixes, proxies that decode paths.  Prints a table; t/README.md
# has the latest one.  The clients are the newest huggingface_hub with hf_xet,
# @huggingface/hub, and if "make clients" has installed them, the oldest
# huggingface_hub and hf-hub in Rust.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Fronts;
use Test::Xet::Real;
use Test::Xet::Table;

my $build = Test::Xet::Real::build();
my $npm = "$build/npm";

my $t = Test::Xet->new(directives => { xet_url_base => undef }, timeout => 900,
	conf => Test::Xet::Fronts::conf(''));

Test::Xet::Fronts::files($t);
$t->run();
$t->allow(qr/xet: 404 /);

my $table = Test::Xet::Table->new($t);
my @fronts = Test::Xet::Fronts::urls($t);
my ($n, $seen) = (0, 0);
my @rows;

# a repo for clients that do not move one

$table->script('the repo me/field', { env => env($fronts[0][1], '', '') },
	$table->python(), 'hub_prepare.py', $table->machine());

# releases of huggingface_hub before 0.17 do not read HF_TOKEN

row('huggingface_hub, hf_xet', $table->python(), 'hub_front.py');
row('huggingface_hub 0.16.4',
	"$build/clients/huggingface_hub-0.16.4/bin/python", 'hub_front.py');
row('@huggingface/hub', Test::Xet::Real::node_program(), 'hub_front.mjs');
row("hf-hub $_ (Rust)", "$build/clients/hf-hub-$_/client")
	for qw/ 0.4.3 1.0.0 /;

diag(join("\n", '', '| | ' . join(' | ', map { $_->[0] } @fronts) . ' |',
	'| ---' x (@fronts + 1) . ' |', @rows, ''));

$t->done();

# --------------------------------------------------------------------------

# Runs a client at each front.  hf-hub 0.4 trusts only the certificates that it
# brings along.  huggingface_hub 0.16 to 1.0 creates a model below a prefix, and
# then fails to parse its URL.

sub row {
	my ($client, $program, $script) = @_;

	return if $program =~ m!/! && !-x $program;

	my @cells;

	for (@fronts) {
		my ($front, $url) = @$_;

		if ($url =~ /^https/ && $client =~ /^hf-hub 0/) {
			push @cells, '-';
			next;
		}

		my $faults = $client =~ /_hub 0\.16/ && $url =~ m!\d/.!
			? { create_repo => 'takes the prefix for a type' } : {};
		my @more = ('me/f' . ++$n);

		push @more, $npm, $url, 'hf_test'
			if ($script // '') =~ /\.mjs$/;

		my @passed = $table->script("$client: $front",
			{ env => env($url, $client, $front),
			faults => $faults },
			$program, $script, $table->machine(), @more);

		push @cells, scalar(@passed);
		protocols($client, $front, $url);
	}

	push @rows, '| ' . join(' | ', $client, @cells) . ' |';
}

sub env {
	my ($url, $client, $front) = @_;

	my $ca = $t->dir() . '/ca.pem';

	return { HF_ENDPOINT => $url, HUGGING_FACE_HUB_TOKEN => 'hf_test',
		map({ $_ => $ca } qw/ SSL_CERT_FILE REQUESTS_CA_BUNDLE
			NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE /),
		$front eq 'HTTP/2' && $client =~ /hf_xet/
			? (HUB_HTTP2 => 1) : () };
}

# A client that falls back to other transfers, or to another URL of the server,
# would pass unseen.  Proxies send HTTP/1.0; hf_xet, which also gets its tokens
# from the Hub, always uses HTTP/1.1.

sub protocols {
	my ($client, $front, $url) = @_;

	my ($port) = $url =~ m!:(\d+)(?:/|$)!;
	my $log = $t->read_file('fronts.log');
	my @new = grep { !m! HTTP/1\.0 ! } split(/\n/, substr($log, $seen));

	$seen = length($log);

	my @other = grep { !/^$port / } @new;
	my @old = grep { m! HTTP/1\.1 ! && !m!/(?:cas/|xorbs/|xet-\w+-token/)! }
		@new;

	ok(@new && !@other, "$client: $front: at no other port")
		or diag(join("\n", @other));
	ok((grep { m! POST 200 /\S*/shards$! } @new),
		"$client: $front: sent by Xet") unless $client =~ / 0\./;
	is("@old", '', "$client: $front: by HTTP/2")
		if $front eq 'HTTP/2' && $client =~ /hf_xet/;
}
