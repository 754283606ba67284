#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# What is too large for t/hub_clients.t, or too old, against a server that is
# the Hub: datasets, transformers and safetensors, and older releases of
# huggingface_hub; as a table, which t/README.md has.  Run by "make clients",
# which has installed them; rows named as arguments are run alone ("datasets").

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
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

for my $package (qw/ datasets transformers safetensors /) {
	row($package, "$clients/datasets/bin/python", $package);
}

for my $python (glob("$clients/huggingface_hub*/bin/python")) {
	row('huggingface_hub', $python, 'older');
}

print strftime("\n%Y-%m-%d\n\n", gmtime()), "| client | rows that pass |\n",
	"| --- | --- |\n", map { "| $_->[0] | $_->[1] |\n" } @rows;
print "\n";

$t->done();

# --------------------------------------------------------------------------

sub row {
	my ($package, $python, $command) = @_;

	return unless -x $python;

	my $version = `$python -c 'import importlib.metadata as m;
print(m.version("$package"))'`;
	chomp($version);

	my $name = "$package $version";

	return if @wanted && !grep { index($name, $_) == 0 } @wanted;

	my @passed = $table->script($name, {}, $python, 'hub_data.py',
		$command, $table->machine());

	push @rows, [ $name, join(', ', @passed) ];
}
