#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Tests clients that t/clients/hub_rows.t and t/hub/data.t do not run against
# this server as their Hub: releases of huggingface_hub of each year and each
# major version, and clients in Rust, Go and JavaScript.  Prints a table;
# t/README.md has the latest table.  "make clients" installs the clients and
# runs this script; arguments name the rows to run ("huggingface_hub").

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::Real;
use Test::Xet::Table;

use POSIX qw/ strftime /;

my @wanted = @ARGV;
my $clients = Test::Xet::Real::build() . '/clients';

my $t = Test::Xet->new(Test::Xet::Table::hub(), timeout => 3600);

$t->token_key();
$t->run();

my $table = Test::Xet::Table->new($t);
my @rows;

for my $python (glob("$clients/huggingface_hub*/bin/python")) {
	row('huggingface_hub ' . version($python, 'huggingface_hub'), $python,
		'hub_versions.py');
}

# a repo for clients that only download

$table->script('the repo me/field', {}, $table->python(), 'hub_prepare.py',
	$table->machine());

row("hf-hub $_ (Rust)", "$clients/hf-hub-$_/client") for qw/ 0.4.3 1.0.0 /;

row('go-huggingface 0.3.1 (Go)', "$clients/hub_go/client");

row('OpenDAL ' . version("$clients/opendal/bin/python", 'opendal'),
	"$clients/opendal/bin/python", 'hub_opendal.py')
	if -x "$clients/opendal/bin/python";

node_llama_cpp();

print strftime("\n%Y-%m-%d\n\n", gmtime()), "| client | rows that pass |\n",
	"| --- | --- |\n", map { "| $_->[0] | $_->[1] |\n" } @rows;
print "\n";

$t->done();

# --------------------------------------------------------------------------

# Runs a program that prints rows, if it is installed: an interpreter with a
# script of this folder, or a compiled client.

sub row {
	my ($name, $program, $script) = @_;

	return unless -x $program;
	return if @wanted && !grep { index($name, $_) == 0 } @wanted;

	# releases of huggingface_hub before 0.17 do not read HF_TOKEN

	my @passed = $table->script($name,
		{ env => { HUGGING_FACE_HUB_TOKEN => 'hf_test' } }, $program,
		$script, $table->machine());

	push @rows, [ $name, scalar(@passed) ];
}

sub version {
	my ($python, $package) = @_;

	my $version = `$python -c 'import importlib.metadata as m;
print(m.version("$package"))'`;
	chomp($version);

	return $version;
}

# Downloads a GGUF file by the name of its quantization.

sub node_llama_cpp {
	my $cli = "$clients/node-llama-cpp/node_modules/.bin/node-llama-cpp";
	my $name = 'node-llama-cpp';

	return unless -x $cli;
	return if @wanted && !grep { index($name, $_) == 0 } @wanted;

	my $to = $table->machine();

	$table->program("$name: pull hf:me/field:Q4_K_M",
		{ env => { MODEL_ENDPOINT => $t->url('/') } },
		Test::Xet::Real::node_program(), $cli, 'pull',
		'hf:me/field:Q4_K_M', '--dir', $to);

	my ($file) = glob("$to/*.gguf");
	my $same = defined($file) && slurp($file) eq 'GGUF' . 'x' x 1000;

	ok($same, "$name: the bytes");
	push @rows, [ $name, 1 + $same ];
}
