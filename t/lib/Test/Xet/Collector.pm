package Test::Xet::Collector;

# Copyright (C) the ngx_http_xet_module authors

# Runs a collection when a test asks for it, and at no other time:
#
#     my $r = collect($t, grace => '0s');
#
# Returns the result of xet() of Test::Xet::Cli for "xet gc --json".  A second
# server with xet_gc runs in the meantime.  Options:
#
#     grace     56d
#     rate      1000000
#     pg        another Test::Xet::Postgres
#     conninfo  connection string of another database
#     args      [ more arguments of xet gc ]
#     before    a function to call before xet gc starts
#     meanwhile a function to call after xet gc has started
#
# collector($t)->allow() allows log lines of that server.

use warnings;
use strict;

use parent qw/ Exporter /;

use Test::Xet;
use Test::Xet::Cli;

our @EXPORT = qw/ collect collector /;

sub collector {
	my ($t) = @_;

	return $t->{collector} //= Test::Xet->new(workers => 1, beside => $t,
		log => 'info', timeout => $t->{o}{timeout},
		allow => $t->{allow});
}

sub collect {
	my ($t, %o) = @_;

	my $node = collector($t);
	my $pg = $o{pg} // $t->pg();
	my $conninfo = $o{conninfo} // $pg->conninfo();
	my $grace = $o{grace} // '56d';
	my $rate = $o{rate} // 1000000;

	# otherwise the server would begin a first run by itself

	$pg->sql("INSERT INTO xet.jobs (name, started_at) VALUES ('gc',"
		. ' now()) ON CONFLICT DO NOTHING',
		$conninfo =~ /dbname=(\w+)/ ? (db => $1) : ());

	$node->write_conf(undef, directives => {
		xet_gc => "on grace=$grace interval=366d rate=$rate",
		xet_postgres => "\"$conninfo\"" });
	$node->run();

	$o{before}->() if $o{before};

	my $run = xet_start(undef, { env => { XET_POSTGRES => $conninfo } },
		'gc', '--json', @{ $o{args} || [] });

	$o{meanwhile}->($run, $node) if $o{meanwhile};

	my $r = xet_wait($run);

	$node->stop();

	return $r;
}

1;
