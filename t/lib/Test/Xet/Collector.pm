package Test::Xet::Collector;

# Copyright (C) the ngx_http_xet_module authors

# A collection when a test says so, and at no other time:
#
#     my $r = collect($t, grace => '0s');
#
# is what xet() of Test::Xet::Cli returns for "xet gc --json", with a server
# beside that of the test, with xet_gc, that runs meanwhile.  Options:
#
#     grace     56d
#     rate      1000000
#     pg        another Test::Xet::Postgres
#     conninfo  of another database
#     args      [ more arguments of xet gc ]
#     before    a function that is called before xet gc is started
#     meanwhile one that is called when it has been
#
# What the log of that server may have is allowed by collector($t)->allow().

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

	# a first run would begin by itself

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
